#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/clients.h"

namespace baton {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kStaleMax = 20;

}  // namespace

/// Takes the place of a session in server/session: it may outlive its consumer.
class Consumer::Sink final : public ConsumerSink {
 public:
  explicit Sink(Consumer& consumer) : consumer_(&consumer) {}
  void deliver(std::vector<Delivery> deliveries) override {
    if (consumer_ == nullptr || !consumer_->world_.broker.take_answer()) return;
    consumer_->arrive(*this, deliveries);
  }
  void close(const Error& /*reason*/) override {
    if (consumer_ != nullptr) consumer_->closed(*this);
  }
  void abandon() { consumer_ = nullptr; }

  std::string queue;
  std::string id;

 private:
  Consumer* consumer_;
};

Consumer::Consumer(ClientWorld world, std::size_t number, Habit habit, std::string queue)
    : world_(world),
      number_(number),
      habit_(habit),
      queue_(std::move(queue)),
      id_(fmt::format("c{}", number)),
      random_(Random(world.plan.seed).fork(fmt::format("consumer {}", number))) {}

Consumer::~Consumer() {
  if (sink_ != nullptr) sink_->abandon();
}

void Consumer::begin() { act(); }

void Consumer::stop() {
  stopped_ = true;
  if (state_ != State::away) detach();
}

void Consumer::on_crash() {
  // Messages in its buffer are lost with the connection, and may count an attempt.
  for (const Delivery& delivery : unwritten_) {
    world_.ledger.arrived_late(world_.ledger.name(queue_, delivery.token));
  }
  unwritten_.clear();
  sink_.reset();
  state_ = State::away;
}

void Consumer::act() {
  if (stopped_ || world_.trace.failed()) return;
  const Duration pause =
      habit_ == Habit::drain ? Duration{milliseconds{20}} : world_.plan.think_max;
  world_.timeline.after(draw(random_, microseconds{10}, pause), [this] { act(); });
  if (!world_.broker.up() || state_ == State::attaching) return;
  if (state_ == State::away) {
    if (habit_ == Habit::drain || random_.chance(1, 3)) attach();
    return;
  }
  if (habit_ == Habit::erratic) act_on_leases();
}

/// Chooses its id this time, its queue, and how much it wants.
void Consumer::choose(AttachCommand& command) {
  // Mostly the same as before: it returns to its leases.
  if (queue_.empty() || random_.chance(1, 4)) {
    queue_ = random_.chance(3, 4) ? pick_one(random_, world_.plan.queues).name
                                  : pick_one(random_, all_queues());
  }
  const std::uint64_t who = random_.chance(1, 10) ? random_.below(world_.plan.consumers) : number_;
  id_ = fmt::format("c{}", who);
  command.in_flight_max = static_cast<std::uint32_t>(draw(random_, 1, world_.plan.in_flight_max));
  if (random_.chance(1, 4)) command.in_flight_bytes_max = draw(random_, 1, 500);
  if (random_.chance(1, 3)) command.credit = random_.below(6);
  command.concurrency = static_cast<std::uint32_t>(draw(random_, 1, 3));
}

void Consumer::attach() {
  AttachCommand command;
  command.in_flight_max = 32;
  if (habit_ == Habit::erratic) choose(command);
  command.queue = queue_;
  command.consumer = registration_ = world_.broker.next_consumer_number();
  command.consumer_id = id_;
  parting_ = {.queue = queue_,
              .consumer_id = id_,
              .attach = world_.ledger.attach_sent(queue_, id_),
              .concurrency = command.concurrency,
              .orderly = false,
              .written = {},
              .begun = {}};
  if (world_.plan.canary == Canary::count_prefetched) command.concurrency = 1000;
  sink_ = std::make_shared<Sink>(*this);
  sink_->queue = queue_;
  sink_->id = id_;
  command.sink = sink_;
  state_ = State::attaching;
  world_.trace.note("consumer {} attaches to '{}' as {}", number_, queue_, id_);
  world_.broker.submit(
      std::move(command),
      [this, sink = sink_](QueueCommand& done) {
        if (sink_ == sink) attached(std::get<AttachCommand>(done));
      },
      [] {});
}

void Consumer::attached(const AttachCommand& command) {
  if (command.error.has_value()) {
    state_ = State::away;
    sink_.reset();
    if (habit_ == Habit::erratic) queue_.clear();
    return;
  }
  state_ = State::attached;
  world_.ledger.returned(queue_, id_, world_.broker.now());
}

void Consumer::detach() {
  parting_.orderly = random_.chance(1, 4);
  DetachCommand command{
      .queue = queue_, .consumer = registration_, .unwritten = {}, .orderly = parting_.orderly};
  for (const Delivery& delivery : unwritten_) command.unwritten.push_back(delivery.token);
  world_.trace.note("consumer {} leaves '{}' with {} unwritten", number_, queue_,
                    unwritten_.size());
  if (world_.plan.canary == Canary::drop_unwritten) command.unwritten.clear();
  unwritten_.clear();
  sink_.reset();
  state_ = State::away;
  world_.ledger.left(queue_, id_);
  while (!held_.empty()) {
    stale_.push_back(held_.front());
    held_.pop_front();
  }
  world_.broker.submit(
      std::move(command),
      [this, parting = std::move(parting_)](QueueCommand&) {
        world_.ledger.left_for_good(parting, world_.broker.now());
      },
      nullptr);
}

void Consumer::arrive(const Sink& sink, const std::vector<Delivery>& deliveries) {
  for (const Delivery& delivery : deliveries) {
    world_.trace.note("delivery {}.{} of {} to consumer {} attempt {}", delivery.token.boot,
                      delivery.token.number, delivery.message->payload().substr(0, 6), number_,
                      delivery.attempt);
    world_.ledger.delivered(sink.queue, sink.id, delivery, world_.broker.now());
    if (world_.trace.failed()) return;
    if (&sink != sink_.get()) {
      world_.ledger.arrived_late(world_.ledger.name(sink.queue, delivery.token));
      continue;
    }
    if (state_ != State::attached)
      world_.trace.fail("a delivery before the registration is confirmed");
    unwritten_.push_back(delivery);
  }
  world_.timeline.after(draw(random_, microseconds{1}, milliseconds{5}), [this] { write(); });
}

void Consumer::closed(const Sink& sink) {
  if (&sink == sink_.get()) detach();
}

/// The network takes some of the messages that wait for it.
void Consumer::write() {
  if (state_ != State::attached) return;
  std::vector<LeaseToken> tokens;
  for (std::size_t left = draw(random_, 1, 8); left > 0 && !unwritten_.empty(); --left) {
    const LeaseToken token = unwritten_.front().token;
    unwritten_.pop_front();
    world_.ledger.written(world_.ledger.name(queue_, token));
    parting_.written.insert(world_.ledger.name(queue_, token));
    tokens.push_back(token);
    if (habit_ == Habit::erratic) held_.push_back({queue_, token});
  }
  if (!unwritten_.empty()) {
    world_.timeline.after(draw(random_, microseconds{1}, milliseconds{5}), [this] { write(); });
  }
  if (habit_ == Habit::drain && !tokens.empty()) send_acks(queue_, std::move(tokens));
}

void Consumer::act_on_leases() {
  const std::uint64_t what = random_.below(100);
  if (what < 50) {
    ack(draw(random_, 1, 8));
  } else if (what < 62) {
    nack();
  } else if (what < 71) {
    extend();
  } else if (what < 78) {
    ack_stale();
  } else if (what < 85) {
    give_credit();
  } else if (what < 91) {
    mark();
  } else if (what < 96) {
    detach();
  }
}

std::optional<Consumer::Held> Consumer::take_held() {
  if (held_.empty()) return std::nullopt;
  const auto at = held_.begin() + static_cast<std::ptrdiff_t>(random_.below(held_.size()));
  Held held = *at;
  held_.erase(at);
  stale_.push_back(held);
  if (stale_.size() > kStaleMax) stale_.pop_front();
  return held;
}

void Consumer::ack(std::size_t count) {
  std::map<std::string, std::vector<LeaseToken>> tokens;
  for (; count > 0; --count) {
    if (const auto held = take_held(); held.has_value()) tokens[held->queue].push_back(held->token);
  }
  for (auto& [queue, list] : tokens) send_acks(queue, std::move(list));
}

/// Sends an ack late, or again.
void Consumer::ack_stale() {
  if (stale_.empty()) return;
  const Held& held = stale_[random_.below(stale_.size())];
  send_acks(held.queue, {held.token});
}

void Consumer::send_acks(const std::string& queue, std::vector<LeaseToken> tokens) {
  for (const LeaseToken token : tokens) world_.ledger.ack_sent(world_.ledger.name(queue, token));
  world_.broker.submit(
      AckCommand{.queue = queue, .tokens = std::move(tokens), .outcomes = {}},
      [this](QueueCommand& done) {
        const auto& ack = std::get<AckCommand>(done);
        for (std::size_t i = 0; i < ack.tokens.size(); ++i) {
          world_.trace.note("ack {}.{}: {}", ack.tokens[i].boot, ack.tokens[i].number,
                            ack.outcomes.at(i).has_value() ? "lost" : "ok");
          world_.ledger.acked(world_.ledger.name(ack.queue, ack.tokens[i]), ack.outcomes.at(i),
                              world_.broker.now());
        }
      },
      [] {});
}

void Consumer::nack() {
  const auto held = take_held();
  if (!held.has_value()) return;
  NackItem item{.token = held->token, .retry = {}, .reason = random_.chance(1, 2) ? "no" : ""};
  const std::uint64_t kind = random_.below(3);
  if (kind == 1) {
    item.retry = {.kind = Retry::Kind::after,
                  .delay = draw(random_, Duration{0}, milliseconds{1200})};
  }
  if (kind == 2) item.retry = {.kind = Retry::Kind::release, .delay = {}};
  world_.ledger.nack_sent(world_.ledger.name(held->queue, held->token));
  world_.trace.note("consumer {} nacks {}.{}", number_, held->token.boot, held->token.number);
  world_.broker.submit(
      NackCommand{.queue = held->queue, .items = {std::move(item)}, .outcomes = {}}, nullptr,
      nullptr);
}

void Consumer::extend() {
  if (held_.empty()) return;
  const Held held = held_[random_.below(held_.size())];
  const Duration timeout = draw(random_, milliseconds{50}, milliseconds{1500});
  const Instant least = world_.broker.now() + timeout;
  world_.ledger.extend_sent(world_.ledger.name(held.queue, held.token), least);
  world_.broker.submit(
      ExtendCommand{.queue = held.queue, .items = {{held.token, timeout}}, .outcomes = {}},
      [this, least](QueueCommand& done) {
        const auto& extend = std::get<ExtendCommand>(done);
        world_.ledger.extended(world_.ledger.name(extend.queue, extend.items[0].token), least,
                               extend.outcomes.at(0), world_.broker.now());
      },
      [] {});
}

/// Reports what it has begun; sometimes messages that it no longer holds.
void Consumer::mark() {
  const std::deque<Held>& from = random_.chance(1, 10) ? stale_ : held_;
  if (from.empty()) return;
  const Held held = from[random_.below(from.size())];
  if (held.queue != queue_) return;
  parting_.begun.insert(world_.ledger.name(held.queue, held.token));
  world_.broker.submit(
      BegunCommand{.queue = queue_, .consumer = registration_, .tokens = {held.token}}, nullptr,
      nullptr);
}

void Consumer::give_credit() {
  world_.broker.submit(
      CreditCommand{.queue = queue_, .consumer = registration_, .added = draw(random_, 1, 5)},
      nullptr, nullptr);
}

}  // namespace baton
