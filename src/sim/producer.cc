#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/clients.h"

namespace baton {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kUnderWayMax = 3;

}  // namespace

Producer::Producer(ClientWorld world, std::size_t number)
    : world_(world),
      number_(number),
      random_(Random(world.plan.seed).fork(fmt::format("producer {}", number))) {}

void Producer::act() {
  if (stopped_ || world_.trace.failed()) return;
  if (world_.ledger.sent() >= world_.plan.messages_max) return;
  // In bursts, so that a queue is deep sometimes.
  const std::size_t batches = random_.chance(1, 6) ? kUnderWayMax : 1;
  for (std::size_t i = 0; i < batches && under_way_ < kUnderWayMax; ++i) send();
  world_.timeline.after(draw(random_, microseconds{10}, world_.plan.think_max), [this] { act(); });
}

void Producer::send() {
  if (!world_.broker.up()) return;
  EnqueueCommand command;
  command.queue = pick_one(random_, world_.plan.queues).name;
  std::vector<std::uint64_t> numbers;
  const std::size_t count = draw(random_, 1, world_.plan.batch_max);
  for (std::size_t i = 0; i < count; ++i) {
    NewMessage message = make_message(command.queue);
    numbers.push_back(world_.ledger.send(
        {.queue = command.queue,
         .key = message.fairness_key,
         .producer = number_,
         .dedup_id = message.dedup_id,
         .undisturbed = message.delay == Duration{0} && message.throttle_keys.empty() &&
                        message.expires_after == Duration{0},
         .may_expire = message.expires_after > Duration{0} || command.queue == "b",
         .at = world_.broker.now()}));
    message.payload = fmt::format("{}:", numbers.back()) + message.payload;
    command.messages.push_back(std::move(message));
  }
  world_.trace.note("producer {} sends {}..{} to '{}'", number_, numbers.front(), numbers.back(),
                    command.queue);
  ++under_way_;
  world_.broker.submit(
      std::move(command),
      [this, numbers](QueueCommand& done) {
        --under_way_;
        const auto& enqueue = std::get<EnqueueCommand>(done);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          world_.ledger.answered(numbers[i], enqueue.outcomes.at(i), enqueue.queue);
        }
      },
      [this] { --under_way_; });
}

NewMessage Producer::make_message(const std::string& queue) {
  NewMessage message;
  message.payload = std::string(random_.below(world_.plan.payload_max + 1), 'p');
  message.fairness_key = pick_one(random_, world_.plan.keys);
  if (random_.chance(1, 6)) message.delay = draw(random_, microseconds{1}, milliseconds{1500});
  if (random_.chance(1, 4)) message.dedup_id = fmt::format("d{}", random_.below(8));
  if (random_.chance(1, 12)) {
    message.expires_after = draw(random_, milliseconds{1}, milliseconds{1500});
  }
  if (queue == "a" && random_.chance(1, 4)) message.throttle_keys.emplace_back("t");
  if (queue == "a" && random_.chance(1, 6)) message.throttle_keys.emplace_back("u");
  if (random_.chance(1, 4)) message.headers.emplace_back("h", std::string(random_.below(20), 'v'));
  return message;
}

}  // namespace baton
