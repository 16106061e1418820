#include "server/shard/local_broker.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/limits.h"
#include "base/reading_files.h"
#include "core/queue/machine.h"
#include "server/shard/disk_share.h"
#include "server/shard/machines.h"
#include "server/shard/owner_only.h"
#include "server/shard/token_key.h"

namespace baton {
namespace {

constexpr std::chrono::milliseconds kTakeOverPause{200};

/// A call that ends in a function: for messages between shards.
class InternalCall final : public Call {
 public:
  InternalCall(QueueCommand wanted, std::function<void(QueueCommand&)> done)
      : Call(std::move(wanted)), done_(std::move(done)) {}
  void complete() override {
    if (done_ != nullptr) done_(std::get<QueueCommand>(command));
  }

 private:
  std::function<void(QueueCommand&)> done_;
};

std::size_t default_shards() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / 2);
}

/// Files that disagree are an error: a failed assertion on their contents ends the process, as
/// damage does.
Result<std::unique_ptr<Shard>> recover_shard(const Shard::Options& options,
                                             const Shard::Parts& parts, const std::string& folder,
                                             Instant start) {
  const ReadingFiles reading(folder);
  try {
    return Shard::recover(options, parts, start);
  } catch (const std::exception& thrown) {
    return Error{Errc::store_corrupt,
                 fmt::format("its files do not fit together ({}); restore the data folder from a "
                             "copy",
                             thrown.what())};
  }
}

/// Files of earlier versions were readable by every user of the machine.
void tighten(const std::string& data) {
  const Tightened all = make_owner_only(data);
  if (all.changed != 0) {
    spdlog::info("event=permissions_tightened data=\"{}\" files={}", data, all.changed);
  }
  if (all.failed != 0) {
    spdlog::warn(
        "event=permissions_open data=\"{}\" files={} reason=\"they belong to another user\"", data,
        all.failed);
  }
}

}  // namespace

LocalBroker::LocalBroker(BrokerOptions options)
    : options_(std::move(options)), disk_(make_real_disk()) {}

LocalBroker::~LocalBroker() { static_cast<void>(stop()); }

Result<std::unique_ptr<LocalBroker>> LocalBroker::open(BrokerOptions options) {
  auto broker = std::unique_ptr<LocalBroker>(new LocalBroker(std::move(options)));
  const std::size_t wanted =
      broker->options_.shards != 0 ? broker->options_.shards : default_shards();
  BATON_TRY(broker->folder_,
            DataFolder::open(broker->options_.data, wanted, broker->options_.cluster));
  if (broker->options_.shards != 0 && broker->folder_.shards() != wanted) {
    return Error{
        Errc::failed_precondition,
        fmt::format("the data folder '{}' was made for {} shards, which cannot change; start "
                    "without --shards, or with that number",
                    broker->options_.data, broker->folder_.shards())};
  }
  BATON_TRY(broker->token_key_, open_token_key(*broker->disk_, broker->options_.data));
  tighten(broker->options_.data);
  if (broker->options_.fits_disk) {
    const DiskShare share = share_of_disk(broker->options_.data, broker->folder_.shards());
    broker->options_.journal.segment_bytes = share.segment_bytes;
    broker->options_.journal.leave_free_bytes = share.leave_free_bytes;
    broker->options_.shard.checkpoint_journal_bytes = share.checkpoint_journal_bytes;
  }
  std::vector<std::unique_ptr<Shard>> shards;
  Instant start = BrokerClock::wall();
  for (std::size_t number = 0; number < broker->folder_.shards(); ++number) {
    BATON_TRY(std::unique_ptr<Shard> shard,
              broker->recover(number, broker->places_.emplace_back(), start));
    start = std::max(start, shard->started_at());
    shards.push_back(std::move(shard));
  }
  // A recovery takes time, too: a clock that began before it would be late in this process, and
  // what it delayed by an hour would come early in the next.
  broker->clock_ = std::make_unique<BrokerClock>(std::max(start, BrokerClock::wall()));
  for (std::size_t number = 0; number < shards.size(); ++number) {
    broker->run(number, std::move(shards[number]));
  }
  // All shards exist before one of them can send another a message.
  for (const Place& place : broker->places_) place.runner->start();
  broker->running_ = true;
  return broker;
}

Result<std::unique_ptr<ShardLog>> LocalBroker::open_log(std::size_t number) {
  if (options_.open_log != nullptr) return options_.open_log(*disk_, number);
  return open_local_log(*disk_, DataFolder::journal_of(options_.data, number),
                        DataFolder::streams_of(options_.data, number), options_.journal);
}

/// In a cluster, rounds that a former owner sent may arrive after the log was read, and the log may
/// have no leader for seconds: then the shard is recovered again.
Result<std::unique_ptr<Shard>> LocalBroker::recover(std::size_t number, Place& place,
                                                    Instant start) {
  const auto until = std::chrono::steady_clock::now() + options_.take_over_patience;
  while (true) {
    auto shard = recover_once(number, place, start);
    if (shard.has_value() || options_.open_log == nullptr) return shard;
    const Errc code = shard.error().code;
    const bool again = code == Errc::position_taken || code == Errc::unavailable;
    if (!again || std::chrono::steady_clock::now() >= until) return shard;
    spdlog::warn("event=take_over_again shard={} error=\"{}\"", number, to_string(shard.error()));
    place.store.reset();
    place.log.reset();
    std::this_thread::sleep_for(kTakeOverPause);
  }
}

/// Opens the shard's log and store, and rebuilds its state.
Result<std::unique_ptr<Shard>> LocalBroker::recover_once(std::size_t number, Place& place,
                                                         Instant start) {
  BATON_TRY(place.log, open_log(number));
  BATON_TRY(place.store, options_.open_store(DataFolder::checkpoint_of(options_.data, number)));
  Shard::Options shard = options_.shard;
  shard.machine.shard = number;
  shard.machine.shards = folder_.shards();
  shard.transfer = [this, number](const QueueEffects::Transfer& leaving) {
    transfer(number, leaving);
  };
  // Ids must differ between shards and between processes; they need not be secret.
  shard.seed = static_cast<std::uint64_t>(start.ns) ^ (std::uint64_t{number} << 56U);
  const std::string folder = fmt::format("{}/shard-{}", options_.data, number);
  auto recovered = recover_shard(shard, {.log = *place.log, .store = *place.store}, folder, start);
  if (!recovered.has_value()) {
    Error error = std::move(recovered).error();
    error.text = fmt::format("'{}': {}", folder, error.text);
    // For the operator who starts a broker this is not one of our limits.
    if (error.code == Errc::resource_exhausted) error.code = Errc::io_error;
    return error;
  }
  return *std::move(recovered);
}

void LocalBroker::run(std::size_t number, std::unique_ptr<Shard> shard) {
  Place& place = places_[number];
  shard->begin_serving(clock_->now());
  place.runner = std::make_unique<ShardRunner>(ShardRunner::Parts{.shard = std::move(shard),
                                                                  .log = *place.log,
                                                                  .store = *place.store,
                                                                  .clock = *clock_,
                                                                  .fsync = options_.fsync,
                                                                  .deposed = [this, number] {
                                                                    if (options_.deposed != nullptr)
                                                                      options_.deposed(number);
                                                                  }});
  place.serving = place.runner.get();
}

void LocalBroker::close_shard(std::size_t number) {
  const std::scoped_lock lock(places_mutex_);
  Place& place = places_.at(number);
  if (place.runner == nullptr) return;
  place.runner->stop();
  closed_.push_back(std::move(place.runner));
  place.store.reset();
  place.log.reset();
}

Status LocalBroker::open_shard(std::size_t number) {
  const std::scoped_lock lock(places_mutex_);
  Place& place = places_.at(number);
  if (place.runner != nullptr) return {};
  BATON_TRY(std::unique_ptr<Shard> shard, recover(number, place, clock_->now()));
  run(number, std::move(shard));
  place.runner->start();
  return {};
}

Status LocalBroker::stop() {
  running_ = false;
  const std::scoped_lock lock(places_mutex_);
  for (const Place& place : places_) {
    if (place.runner != nullptr) place.runner->stop();
  }
  return {};
}

bool LocalBroker::submit(std::unique_ptr<Call>& call, Admission admission) {
  return submit_to(shard_of_queue(name_of(call->command), folder_.shards()), call, admission);
}

bool LocalBroker::submit_to(std::size_t shard, std::unique_ptr<Call>& call, Admission admission) {
  return places_[shard].serving.load()->submit(call, admission);
}

ConsumerNumber LocalBroker::next_consumer_number() { return ConsumerNumber{next_consumer_++}; }

Ticket LocalBroker::next_ticket() { return Ticket{next_ticket_++}; }

ShardStats LocalBroker::stats(std::size_t shard) const {
  return places_[shard].serving.load()->stats();
}

Status LocalBroker::checkpoint() {
  const std::scoped_lock lock(places_mutex_);
  for (const Place& place : places_) {
    if (place.runner != nullptr) BATON_TRY_STATUS(place.runner->checkpoint());
  }
  return {};
}

Instant LocalBroker::now() const { return clock_->now(); }

/// Moves a message from one shard to another: it is Received there before it is Done here, and Done
/// here before it is forgotten there. A lost step is repeated after a restart.
void LocalBroker::transfer(std::size_t from_shard, const QueueEffects::Transfer& transfer) {
  const auto post = [this](std::size_t shard, QueueCommand command,
                           std::function<void(QueueCommand&)> done) {
    std::unique_ptr<Call> call =
        std::make_unique<InternalCall>(std::move(command), std::move(done));
    submit_to(shard, call, Admission::reserved);
  };
  const std::size_t target = shard_of_queue(transfer.to, folder_.shards());
  const TransferForgetCommand forget{
      .queue = transfer.to, .from_shard = from_shard, .transfer = transfer.id};
  const TransferDoneCommand done{.queue = transfer.to,
                                 .transfer = transfer.id,
                                 .from_queue = transfer.from_queue,
                                 .id = transfer.message->id()};
  post(target,
       TransferCommand{.queue = transfer.to,
                       .from_shard = from_shard,
                       .transfer = transfer.id,
                       .from_queue = transfer.from_queue,
                       .message = transfer.message,
                       .error = {}},
       [=, this](QueueCommand& received) {
         const auto& command = std::get<TransferCommand>(received);
         if (command.error.has_value()) {
           retry_transfer(from_shard,
                          {command.transfer, command.queue, command.from_queue, command.message});
           return;
         }
         post(from_shard, done, [=](QueueCommand&) { post(target, forget, nullptr); });
       });
}

/// Retries while the target is full; meanwhile the source keeps the message and counts it.
void LocalBroker::retry_transfer(std::size_t from_shard, QueueEffects::Transfer again) {
  retries_.post([this, from_shard, again = std::move(again)] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    if (running_) transfer(from_shard, again);
  });
}

std::vector<ShardInspection> LocalBroker::inspect() {
  const std::scoped_lock lock(places_mutex_);
  std::vector<ShardInspection> inspections;
  for (const Place& place : places_) {
    ShardInspection& inspection = inspections.emplace_back();
    if (place.runner == nullptr) continue;
    const auto tables = inspect_tables(*place.store);
    if (tables.has_value()) inspection.tables = *tables;
    const ShardRunner& runner = *place.runner;
    inspection.checkpoint_position = runner.checkpointed().value;
    inspection.journal_first = place.log->first().value;
    inspection.journal_next = place.log->next().value;
    inspection.journal_durable = runner.durable().value;
    inspection.journal_bytes = place.log->bytes_since(runner.checkpointed());
    inspection.boot = runner.stats().boot;
    inspection.format_version = kStoreFormat;
  }
  return inspections;
}

Result<std::vector<TableInspection>> inspect_tables(const CheckpointStore& store) {
  std::vector<TableInspection> inspections;
  for (const TableName& table : kShardTables) {
    TableInspection inspection{.name = std::string(table.name), .rows = 0, .bytes = 0};
    RowRange range{.table = table.table,
                   .begin = {},
                   .end = std::string(64, '\xff'),
                   .rows_max = 4096,
                   .bytes_max = 4 * limits::kMiB};
    while (true) {
      BATON_TRY(const std::vector<Row> rows, store.scan(range));
      if (rows.empty()) break;
      for (const Row& row : rows) inspection.bytes += row.key.size() + row.value.size();
      inspection.rows += rows.size();
      range.begin = rows.back().key + '\0';
    }
    inspections.push_back(std::move(inspection));
  }
  return inspections;
}

}  // namespace baton
