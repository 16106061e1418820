#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "pipeline/flow/breaker.h"
#include "pipeline/flow/storm_guard.h"

namespace baton::pipeline {

/// CLOCK_BOOTTIME.
Instant boot_time();

/// The breaker of a sink and the guard against storms, shared by the lanes. Thread-safe.
class Gate {
 public:
  struct Shown {
    flow::Breaker::State state = flow::Breaker::State::closed;
    std::string why{};
    std::optional<Duration> outage{};
    bool of_letters = false;  // The target of the dead letters is unavailable.
  };

  Gate(flow::Breaker::Options breaker, flow::StormGuard::Options storm, Random random)
      : breaker_(breaker, random), storm_(storm), outage_max_(breaker.outage_max) {}

  /// Waits until a batch may be sent. False if `give_up` returned true first.
  bool wait(const std::function<bool()>& give_up);
  /// The batch that wait() allowed is not sent after all.
  void give_back();
  /// Waits until an operator has resumed a halted gate. False if `give_up` returned true first.
  bool wait_while_halted(const std::function<bool()>& give_up);
  void succeeded();
  /// An attempt failed, and there will be another.
  void failed(const std::string& why, Duration retry_after = {});
  void open(const std::string& why, Duration retry_after = {});
  void halt(const std::string& why);
  void resume();
  /// This judge accepted `count` records in a row.
  void passed(flow::StormGuard::Judge judge, std::size_t count);
  /// This judge rejected a record, which is about to become a dead letter. False: too many were
  /// rejected, and the gate is halted.
  bool admit_poison(flow::StormGuard::Judge judge);
  /// A lane cannot write its dead letters: while there is such a lane, the sink counts as
  /// unavailable.
  void letters_failed(const std::string& why);
  /// The lane can write its dead letters again, or has given up.
  void letters_over();
  /// Changes the limits from now on.
  void set_options(flow::Breaker::Options breaker, flow::StormGuard::Options storm);

  [[nodiscard]] std::optional<Instant> probe_at() const;
  void probed(const std::optional<std::string>& error);

  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// Whether not even a trial would be let through.
  [[nodiscard]] bool is_out() const;
  [[nodiscard]] bool outage_is_too_long() const;
  [[nodiscard]] std::uint32_t batch_percent() const;
  [[nodiscard]] Shown shown() const;
  /// How often the sink became unavailable.
  [[nodiscard]] std::uint64_t outages() const;

 private:
  void changed();

  mutable std::mutex mutex_;
  std::condition_variable moved_;
  flow::Breaker breaker_;
  flow::StormGuard storm_;
  std::string letters_why_;
  std::uint32_t letters_waiting_ = 0;  // The number of lanes.
  std::optional<Instant> letters_out_since_;
  Duration outage_max_;
  std::atomic<bool> closed_{true};
  flow::Breaker::State state_ = flow::Breaker::State::closed;  // As of the last change.
  std::uint64_t outages_ = 0;
};

}  // namespace baton::pipeline
