#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "pipeline/flow/backoff.h"

namespace baton::flow {

/// Decides whether lanes may send to a sink. Pure; the owner calls it under one lock.
///
/// CLOSED: batches go through. OPEN: batches are kept, and a probe asks now and then. HALF_OPEN: a
/// probe succeeded, and one lane sends one real batch, because a read-only or full database answers
/// a probe. HALTED: an operator must act.
class Breaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open, halted };

  struct Options {
    // The breaker opens if at least `window_calls` calls ended within `window` and
    // `failing_percent` of them failed.
    std::uint32_t window_calls = 20;
    Duration window = std::chrono::seconds(10);
    std::uint32_t failing_percent = 50;
    // The time after a failed probe until the next one: `first`, then twice as long each time, then
    // `most`, plus or minus a tenth.
    Backoff probe{.first = std::chrono::milliseconds(200), .most = std::chrono::seconds(10)};
    Duration outage_max{0};  // 0: no limit.
    Duration slow_start = std::chrono::seconds(2);
  };

  Breaker(Options options, Random random) : options_(options), random_(random) {}

  /// Changes the limits from now on; a planned probe comes earlier if the new limits say so.
  void set_options(Options options, Instant now);

  /// Whether this lane may send now. In HALF_OPEN the first lane that asks gets the trial.
  bool may_send();
  /// The lane with the trial has nothing to send after all.
  void give_back() { trial_ = false; }
  /// A call succeeded. A record that is poison or a duplicate also proves that the sink is
  /// available.
  void succeeded(Instant now);
  /// A call failed and may be retried in place. True if the breaker opened. `retry_after`: the sink
  /// asked not to be called for this long; no probe comes sooner.
  bool failed(std::string why, Instant now, Duration retry_after = {});
  /// The retries are used up, or no connection can be made.
  void open(std::string why, Instant now, Duration retry_after = {});
  /// Every record would fail. Stays halted until resume().
  void halt(std::string why, Instant now);
  /// An operator has acted.
  void resume(Instant now);

  /// OPEN: when the next probe is due.
  [[nodiscard]] std::optional<Instant> probe_at() const;
  void probed(bool good, std::string why, Instant now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] std::optional<Instant> outage_since() const { return outage_since_; }
  [[nodiscard]] bool outage_is_too_long(Instant now) const;
  /// The size of batches after an outage, in percent: grows back to 100.
  [[nodiscard]] std::uint32_t batch_percent(Instant now) const;

 private:
  struct Call {
    Instant at;
    bool good = false;
  };
  void record(bool good, Instant now);
  void close(Instant now);

  Options options_;
  Random random_;
  State state_ = State::closed;
  bool trial_ = false;  // HALF_OPEN: a lane has the trial.
  std::string why_;
  std::deque<Call> calls_;
  std::uint32_t failing_ = 0;
  std::uint32_t probes_ = 0;
  Instant probe_at_;
  std::optional<Instant> outage_since_;
  std::optional<Instant> closed_since_;
};
std::string_view to_string(Breaker::State state);

}  // namespace baton::flow
