#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <random>
#include <utility>

#include <baton/worker.h>
#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"
#include "core/workers/documents.h"
#include "core/workers/settings.h"
#include "worker/registry/registry.h"
#include "worker/runner/runner.h"

namespace baton::client {
namespace {

WorkerTiming to_public(const partition::Timing& timing) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  return {.lease = duration_cast<milliseconds>(timing.lease),
          .heartbeat = duration_cast<milliseconds>(timing.heartbeat),
          .resync = duration_cast<milliseconds>(timing.resync),
          .drain = duration_cast<milliseconds>(timing.drain),
          .static_grace = duration_cast<milliseconds>(timing.static_grace),
          .reclaim_grace = duration_cast<milliseconds>(timing.reclaim_grace)};
}

partition::Timing to_timing(const WorkerTiming& timing) {
  return {.lease = timing.lease,
          .heartbeat = timing.heartbeat,
          .resync = timing.resync,
          .drain = timing.drain,
          .static_grace = timing.static_grace,
          .reclaim_grace = timing.reclaim_grace};
}

bool has_slow_failover(const std::string& store_url) {
  const auto url = coord::parse_store_url(store_url);  // Opening it reports what is wrong.
  return url && url->kind->slow_failover;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string chance() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// A name of letters, digits, _ and -, of the greatest length allowed.
std::string made_up_id() {
  std::string host = host_name().substr(0, 32);
  for (char& c : host) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return fmt::format("{}-{}-{}", host, ::getpid(), chance().substr(0, 4));
}

/// Shorter intervals would keep the store busy with heartbeats alone.
Status check_interval(std::string_view name, Duration interval) {
  if (interval >= kWorkerIntervalMin) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{} {} must be at least {}", name, format_duration(interval),
                           format_duration(kWorkerIntervalMin))};
}

Result<partition::Settings> to_settings(const WorkerOptions& options) {
  partition::Settings settings;
  settings.group = options.group;
  settings.worker = options.id.empty() ? made_up_id() : options.id;
  settings.partitions = options.partitions;
  settings.weight = options.weight;
  settings.static_id = options.static_id;
  settings.fenced = options.fenced;
  settings.timing =
      options.timing.has_value()
          ? to_timing(*options.timing)
          : partition::timing_of(partition::Profile::standard, has_slow_failover(options.store));
  settings.host = fmt::format("{}:{}", host_name(), ::getpid());
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  settings.wall_offset =
      std::chrono::duration_cast<Duration>(wall) - Duration(worker::boot_time().ns);
  settings.incarnation = chance;
  if (options.static_id && options.id.empty()) {
    return Error{Errc::invalid_argument, "a static id needs an id"};
  }
  BATON_TRY_STATUS(partition::check(settings));
  BATON_TRY_STATUS(check_interval("heartbeat", settings.timing.heartbeat));
  BATON_TRY_STATUS(check_interval("resync", settings.timing.resync));
  return settings;
}

/// The bytes of the largest document that the group will have, if the names of all workers are as
/// long as ours: each partition in the first chunk is moving from one owner to the next.
std::size_t largest_document(const partition::Settings& settings) {
  constexpr auto kMostTime = partition::WallTime(std::numeric_limits<std::int64_t>::max());
  const partition::SessionId session =
      fmt::format("{}.{}", settings.worker, settings.incarnation());
  partition::WorkerSession mine;
  mine.state = partition::SessionState::restarting;
  mine.beat = std::numeric_limits<std::uint64_t>::max();
  mine.weight = partition::kWeightMax;
  mine.host = settings.host;
  mine.lease = mine.grace = mine.since = mine.renewed = kMostTime;
  partition::Assignment assignment;
  assignment.partitions = settings.partitions;
  assignment.holdings.assign(partition::size_of_chunk(settings.partitions, 0),
                             {.owner = session,
                              .epoch = std::numeric_limits<std::uint64_t>::max(),
                              .next = session,
                              .since = kMostTime,
                              .why = partition::Why::rebalance});
  return std::max(encode(mine).size(), encode(assignment).size());
}

worker::RunnerEvents to_events(WorkerCallbacks callbacks) {
  worker::RunnerEvents events;
  events.acquired = [call = std::move(callbacks.acquired)](const partition::Acquired& effect) {
    if (call) call(PartitionNumber{effect.partition}, Epoch{effect.epoch});
  };
  events.revoking = [call = std::move(callbacks.revoking)](const partition::Revoking& effect) {
    if (!call) return;
    call(PartitionNumber{effect.partition}, Epoch{effect.epoch},
         std::chrono::floor<std::chrono::milliseconds>(effect.deadline - worker::boot_time()));
  };
  events.lost = [call = std::move(callbacks.lost)](const partition::Lost& effect) {
    if (call) call(PartitionNumber{effect.partition}, Epoch{effect.epoch}, effect.why);
  };
  events.renewed = [call = std::move(callbacks.renewed)](const partition::Renewed& effect) {
    if (call) call(std::chrono::nanoseconds(effect.deadline.ns));
  };
  events.note = [call = std::move(callbacks.note)](const partition::Note& effect) {
    if (call) call(effect.warning, effect.text);
  };
  return events;
}

}  // namespace

Result<WorkerTiming> worker_timing(const std::string& profile, const std::string& store_url) {
  const auto parsed = partition::parse_profile(profile);
  if (!parsed.has_value()) return parsed.error();
  return to_public(partition::timing_of(*parsed, has_slow_failover(store_url)));
}

struct Worker::State {
  std::string id;
  worker::Runner runner;
};

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;
Worker::~Worker() = default;

Result<Worker> Worker::open(const WorkerOptions& options, WorkerCallbacks callbacks) {
  auto settings = to_settings(options);
  if (!settings.has_value()) return settings.error();
  auto store = coord::open_store(
      options.store, {.value_bytes = largest_document(*settings), .security = options.security});
  if (!store.has_value()) return store.error();
  const std::string id = settings->worker;
  const auto remake = [url = options.store, security = options.security]() -> Status {
    BATON_TRY_STATUS(
        coord::open_store(url, {.connect_timeout = std::chrono::seconds(1), .security = security}));
    return {};
  };
  auto state = std::unique_ptr<State>(
      new State{id, {{*std::move(store), remake}, *settings, to_events(std::move(callbacks))}});
  return Worker(std::move(state));
}

void Worker::stopped(PartitionNumber partition, Epoch epoch) {
  state_->runner.stopped(partition.value, epoch.value);
}

bool Worker::may_act(PartitionNumber partition, Epoch epoch) const {
  return state_->runner.may_act(partition.value, epoch.value);
}

void Worker::begin_close(bool for_good) { state_->runner.leave(for_good); }

Status Worker::close(bool for_good) {
  if (state_->runner.is_own_thread()) {
    return Error{Errc::failed_precondition,
                 "close() waits for the worker's end, which cannot come before "
                 "its callback has returned: call begin_close() there"};
  }
  begin_close(for_good);
  while (true) {  // The machine gives up by itself.
    if (const auto end = state_->runner.wait_for(std::chrono::hours(1))) return *end;
  }
}

std::optional<Status> Worker::wait(std::chrono::milliseconds timeout) {
  return state_->runner.wait_for(timeout);
}

const std::string& Worker::id() const { return state_->id; }

Worker::Stats Worker::stats() const {
  return {.store_requests = state_->runner.requests(),
          .held = state_->runner.held(),
          .blind = state_->runner.blind()};
}

}  // namespace baton::client
