#include "sim/simulation.h"

#include <chrono>
#include <memory>
#include <vector>

#include "sim/clients.h"
#include "sim/ledger.h"
#include "sim/sim_broker.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// One run, from an empty disk to an empty queue.
class Simulation {
 public:
  explicit Simulation(const Plan& plan)
      : plan_(plan),
        trace_(timeline_, plan.print),
        ledger_(trace_, plan.shards),
        broker_(plan_, timeline_, trace_, ledger_),
        operator_(world()) {
    for (std::size_t i = 0; i < plan.producers; ++i) {
      producers_.push_back(std::make_unique<Producer>(world(), i));
    }
    for (std::size_t i = 0; i < plan.consumers; ++i) add_consumer(i, Consumer::Habit::erratic, "");
  }

  RunResult run() {
    run_faults();
    heal();
    drain();
    finish();
    return {.hash = trace_.hash(),
            .failure = trace_.failure(),
            .sent = ledger_.sent(),
            .confirmed = ledger_.confirmed(),
            .acked = ledger_.acked(),
            .crashes = broker_.crashes(),
            .spilled = broker_.spilled()};
  }

 private:
  ClientWorld world() {
    return {.plan = plan_,
            .timeline = timeline_,
            .trace = trace_,
            .broker = broker_,
            .ledger = ledger_};
  }

  void add_consumer(std::size_t number, Consumer::Habit habit, const std::string& queue) {
    consumers_.push_back(std::make_unique<Consumer>(world(), number, habit, queue));
    broker_.on_crash([consumer = consumers_.back().get()] { consumer->on_crash(); });
  }

  /// Steps until `done`, or fails when that takes too long.
  template <class Done>
  void step_until(Duration limit, std::string_view what, Done done) {
    const Instant deadline = timeline_.now() + limit;
    while (!trace_.failed() && !done()) {
      if (timeline_.now() > deadline) {
        trace_.fail("{} takes more than {}: {}", what, format_duration(limit), broker_.summary());
      }
      if (!timeline_.step()) trace_.fail("{}: nothing moves any more: {}", what, broker_.summary());
    }
  }

  void run_faults() {
    broker_.begin();
    operator_.begin();
    for (const auto& producer : producers_) producer->begin();
    for (const auto& consumer : consumers_) consumer->begin();
    while (!trace_.failed() && timeline_.now().ns < plan_.fault_time.count() && timeline_.step()) {
    }
  }

  void heal() {
    broker_.heal();
    operator_.stop();
    for (const auto& producer : producers_) producer->stop();
    for (const auto& consumer : consumers_) consumer->stop();
  }

  void drain() {
    std::size_t number = 1000;
    for (const std::string& queue : all_queues()) {
      add_consumer(number++, Consumer::Habit::drain, queue);
      consumers_.back()->begin();
    }
    // A call may wait inside the broker for room, and add messages later.
    step_until(seconds{60}, "draining", [&] {
      return broker_.up() && broker_.messages() == 0 && broker_.calls_under_way() == 0;
    });
    for (const auto& consumer : consumers_) consumer->stop();
  }

  void finish() {
    if (trace_.failed()) return;
    // Past every delay, so that rows of purged or deleted messages come up and are removed too.
    const Instant later = timeline_.now() + seconds{3};
    timeline_.after(seconds{4}, [] {});
    step_until(seconds{30}, "settling", [&] { return timeline_.now() > later; });
    if (trace_.failed()) return;
    // Once more after a restart: only then are the rows of deleted and purged queues removed.
    for (int i = 0; i < 2; ++i) {
      broker_.request_checkpoint();
      step_until(seconds{30}, "a last checkpoint", [&] { return broker_.is_quiet(); });
      if (trace_.failed()) return;
      if (i == 0) broker_.restart_quietly();
    }
    if (const std::string rows = broker_.leftover_rows(); !rows.empty()) {
      trace_.fail("all is drained, but the store still has rows: {}", rows);
    }
    ledger_.finish();
  }

  const Plan plan_;
  Timeline timeline_;
  Trace trace_;
  Ledger ledger_;
  SimBroker broker_;
  Operator operator_;
  std::vector<std::unique_ptr<Producer>> producers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
};

}  // namespace

RunResult run_simulation(const Plan& plan) {
  // On the heap: it is large, and its parts refer to each other.
  return std::make_unique<Simulation>(plan)->run();
}

}  // namespace baton
