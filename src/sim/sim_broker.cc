#include "sim/sim_broker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kBegin = hours{24 * 365 * 50};
constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::string_view queue_of(const QueueCommand& command) {
  return std::visit([](const auto& wanted) { return std::string_view(wanted.queue); }, command);
}

}  // namespace

/// A call of a client: answered, or lost with the process.
class SimBroker::SimCall final : public Call {
 public:
  SimCall(SimBroker& broker, QueueCommand wanted, Done done, Lost lost)
      : Call(std::move(wanted)), broker_(broker), done_(std::move(done)), lost_(std::move(lost)) {
    ++broker_.calls_;
  }
  SimCall(const SimCall&) = delete;
  SimCall& operator=(const SimCall&) = delete;
  ~SimCall() override {
    --broker_.calls_;
    if (answered_ || broker_.ending_) return;
    if (!broker_.crashing_ && broker_.answers_left_ != 0)
      broker_.trace_.fail("a call was dropped without an answer");
    if (lost_ != nullptr) lost_();
  }

  void complete() override {
    if (!broker_.take_answer()) return;
    answered_ = true;
    if (done_ != nullptr) done_(std::get<QueueCommand>(command));
  }

 private:
  SimBroker& broker_;
  Done done_;
  Lost lost_;
  bool answered_ = false;
};

SimBroker::SimBroker(const Plan& plan, Timeline& timeline, Trace& trace, Ledger& ledger)
    : plan_(plan),
      timeline_(timeline),
      trace_(trace),
      ledger_(ledger),
      random_(Random(plan.seed).fork("broker")),
      disk_(random_.fork("disk").next()) {
  for (std::uint64_t number = 0; number < plan.shards; ++number) {
    shards_.push_back(std::make_unique<SimShard>(
        SimShard::World{
            .plan = plan_, .timeline = timeline_, .trace = trace_, .disk = disk_, .host = *this},
        number));
  }
}

SimBroker::~SimBroker() {
  ending_ = true;
  shards_.clear();
}

Instant SimBroker::wall() const {
  return Instant{} + kBegin + (timeline_.now() - Instant{}) + wall_skew_;
}

Instant SimBroker::broker_now() const { return started_at_ + (timeline_.now() - started_now_); }

bool SimBroker::faults() const { return !healed_ && timeline_.now().ns < plan_.fault_time.count(); }

std::uint64_t SimBroker::spilled() const {
  std::uint64_t spilled = 0;
  for (const auto& shard : shards_) spilled += shard->spilled();
  return spilled;
}

void SimBroker::begin() {
  start();
  timeline_.after(milliseconds{10}, [this] { sabotage(); });
}

/// Now and then: crashes at random times, disks that are full for a while.
void SimBroker::sabotage() {
  if (!faults() || trace_.failed()) return;
  const auto gap = static_cast<std::uint64_t>(plan_.crash_gap / milliseconds{10});
  if (up_ && random_.chance(1, gap + 1)) crash("out of the blue");
  if (random_.chance(1, plan_.full_odds)) {
    const bool full = random_.chance(1, 3);
    trace_.note("journal disk full: {}", full);
    disk_.set_capacity(full ? disk_.bytes_used() + random_.below(plan_.journal.segment_bytes)
                            : kNever);
  }
  if (random_.chance(1, plan_.full_odds)) {
    const bool full = random_.chance(1, 3);
    trace_.note("store disk full: {}", full);
    for (const auto& shard : shards_) shard->set_store_full(full);
  }
  if (random_.chance(1, 4 * plan_.full_odds)) disk_.fail_sync_after(random_.below(20));
  timeline_.after(milliseconds{10}, [this] { sabotage(); });
}

void SimBroker::heal() {
  healed_ = true;
  disk_.set_capacity(kNever);
  disk_.fail_sync_after(kNever);
  disk_.fail_write_after(kNever);
  for (const auto& shard : shards_) shard->set_store_full(false);
  trace_.note("healed");
}

bool SimBroker::crash_point(std::string_view where, std::uint64_t often) {
  if (!faults() || !up_ || !random_.chance(often, plan_.crash_odds)) return false;
  crash(where);
  return true;
}

std::optional<std::uint64_t> SimBroker::draw_last_answers(std::size_t answers) {
  if (answers == 0 || !faults() || !random_.chance(2, plan_.crash_odds)) return std::nullopt;
  answers_left_ = random_.below(answers);
  return answers_left_;
}

void SimBroker::crash(std::string_view why) {
  const bool power_loss = random_.chance(2, 3);
  trace_.note("CRASH {}{}", why, power_loss ? ", power lost" : "");
  ++crashes_;
  const Instant now = broker_now();
  up_ = false;
  crashing_ = true;
  for (const auto& shard : shards_) shard->stop();
  crashing_ = false;
  if (power_loss) {
    disk_.crash();
  } else {
    disk_.kill();
  }
  for (const auto& shard : shards_) shard->crash_store();
  answers_left_.reset();
  ledger_.crashed(now);
  for (const auto& listener : listeners_) listener();
  if (plan_.wall_jump_max > Duration{0}) {
    wall_skew_ = draw(random_, -plan_.wall_jump_max, plan_.wall_jump_max);
  }
  timeline_.after(draw(random_, milliseconds{1}, plan_.down_max), [this] { start(); });
}

/// A recovery may find its disk full or failing as well.
void SimBroker::arm_start_faults() {
  disk_.fail_sync_after(kNever);
  disk_.fail_write_after(kNever);
  if (!faults()) return;
  if (random_.chance(1, 10)) disk_.fail_sync_after(random_.below(6));
  if (random_.chance(1, 10)) disk_.fail_write_after(random_.below(6));
  if (random_.chance(1, 2)) disk_.set_capacity(kNever);
  if (random_.chance(1, 2)) {
    for (const auto& shard : shards_) shard->set_store_full(false);
  }
}

bool SimBroker::start_shards() {
  Instant start = wall();
  for (const auto& shard : shards_) {
    const Result<Instant> started = shard->start(start);
    if (!started.has_value()) {
      const Errc code = started.error().code;
      trace_.note("start failed: {}", to_string(started.error()));
      if (healed_ || (code != Errc::disk_full && code != Errc::io_error)) {
        trace_.fail("the broker cannot start: {}", to_string(started.error()));
      }
      return false;
    }
    start = std::max(start, *started);
  }
  started_at_ = start;
  started_now_ = timeline_.now();
  return true;
}

void SimBroker::start() {
  if (trace_.failed()) return;
  arm_start_faults();
  const bool started = start_shards();
  // A write that fails later would end the process: crashes cover that.
  disk_.fail_write_after(kNever);
  if (!started) {
    for (const auto& shard : shards_) shard->stop();
    if (random_.chance(1, 2)) {
      disk_.crash();
    } else {
      disk_.kill();
    }
    for (const auto& shard : shards_) shard->crash_store();
    timeline_.after(draw(random_, milliseconds{1}, plan_.down_max), [this] { start(); });
    return;
  }
  up_ = true;
  ledger_.restarted(broker_now(), plan_.shard.machine.return_after_restart);
  for (const auto& shard : shards_) shard->kick(broker_now());
}

bool SimBroker::take_answer() {
  if (answers_left_ == 0) return false;
  if (answers_left_.has_value()) --*answers_left_;
  return true;
}

bool SimBroker::submit(QueueCommand command, Done done, Lost lost) {
  if (!up_) return false;
  const std::uint64_t shard = shard_of_queue(queue_of(command), plan_.shards);
  shards_[shard]->submit(
      std::make_unique<SimCall>(*this, std::move(command), std::move(done), std::move(lost)));
  return true;
}

void SimBroker::post(std::uint64_t shard, QueueCommand command, Done done) {
  if (!up_) return;
  shards_[shard]->submit(
      std::make_unique<SimCall>(*this, std::move(command), std::move(done), nullptr));
}

/// As LocalBroker does it: Received there, then Done here, then forgotten there. Notice of it may
/// be late, so that a message can come round again before.
void SimBroker::transfer(std::uint64_t from_shard, const QueueEffects::Transfer& transfer) {
  const std::uint64_t target = shard_of_queue(transfer.to, plan_.shards);
  trace_.note("transfer {}.{} of {} to '{}'", transfer.id.boot, transfer.id.number,
              transfer.message->id().to_string(), transfer.to);
  const TransferDoneCommand done{.queue = transfer.to,
                                 .transfer = transfer.id,
                                 .from_queue = transfer.from_queue,
                                 .id = transfer.message->id()};
  const TransferId name = plan_.canary == Canary::transfer_by_message
                              ? TransferId::of_message(transfer.message->id())
                              : transfer.id;
  const TransferForgetCommand forget{
      .queue = transfer.to, .from_shard = from_shard, .transfer = name};
  post(target,
       TransferCommand{.queue = transfer.to,
                       .from_shard = from_shard,
                       .transfer = name,
                       .from_queue = transfer.from_queue,
                       .message = transfer.message,
                       .error = {}},
       [this, from_shard, target, done, forget, transfer](QueueCommand& received) {
         if (std::get<TransferCommand>(received).error.has_value()) {
           timeline_.after(milliseconds{100}, [this, from_shard, transfer, life = crashes_] {
             if (life == crashes_) this->transfer(from_shard, transfer);
           });
           return;
         }
         post_late(from_shard, done,
                   [this, target, forget](QueueCommand&) { post_late(target, forget, nullptr); });
       });
}

void SimBroker::post_late(std::uint64_t shard, QueueCommand command, Done done) {
  if (plan_.news_max == Duration{0}) return post(shard, std::move(command), std::move(done));
  timeline_.after(draw(random_, Duration{0}, plan_.news_max),
                  [this, shard, command = std::move(command), done = std::move(done),
                   life = crashes_]() mutable {
                    if (life == crashes_) post(shard, std::move(command), std::move(done));
                  });
}

std::size_t SimBroker::messages() const {
  std::size_t count = 0;
  for (const auto& shard : shards_) count += shard->mirror().messages();
  return count;
}

std::string SimBroker::summary() const {
  std::string text;
  for (const auto& shard : shards_) text += shard->mirror().summary();
  return text;
}

bool SimBroker::is_quiet() const {
  return up_ && std::ranges::all_of(shards_, [](const auto& shard) { return shard->is_quiet(); });
}

void SimBroker::request_checkpoint() {
  for (const auto& shard : shards_) shard->request_checkpoint();
}

std::string SimBroker::leftover_rows() const {
  std::string text;
  for (const auto& shard : shards_) text += shard->leftover_rows();
  return text;
}

void SimBroker::restart_quietly() {
  std::vector<std::vector<QueueDescription>> before;
  before.reserve(shards_.size());
  for (const auto& shard : shards_) before.push_back(shard->describe());
  crashing_ = true;
  for (const auto& shard : shards_) shard->stop();
  crashing_ = false;
  disk_.crash();
  for (const auto& shard : shards_) shard->crash_store();
  if (!start_shards()) return trace_.fail("a quiet restart failed");
  for (std::size_t number = 0; number < shards_.size(); ++number) {
    const std::vector<QueueDescription> after = shards_[number]->describe();
    for (std::size_t i = 0; i < std::min(after.size(), before[number].size()); ++i) {
      const QueueStats& is = after[i].stats;
      const QueueStats& was = before[number][i].stats;
      if (is.dedup_ids != was.dedup_ids || is.ready != was.ready || is.bytes != was.bytes) {
        trace_.fail("queue '{}' came back another: {} dedup ids, were {}", after[i].name,
                    is.dedup_ids, was.dedup_ids);
      }
    }
  }
}

}  // namespace baton
