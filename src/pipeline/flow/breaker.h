#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "pipeline/flow/backoff.h"

namespace baton::flow {

/// Stands between the lanes and a sink. Pure; the owner calls it under one lock.
///
/// CLOSED: batches go through. OPEN: they are kept, and a probe asks now and then. HALF_OPEN: the
/// probe was good, and one lane sends one real batch, because a read-only or full database answers
/// a probe. HALTED: an operator has to look.
class Breaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open, halted };

  struct Options {
    std::uint32_t window_calls = 20;  // So many calls, ...
    Duration window = std::chrono::seconds(10);
    std::uint32_t failing_percent = 50;  // ... so many of them failing: open.
    // How long after a failed probe the next one comes: `first`, then twice as long each time, then
    // every `most`, give or take a tenth.
    Backoff probe{.first = std::chrono::milliseconds(200), .most = std::chrono::seconds(10)};
    Duration outage_max{0};  // 0: wait for ever.
    Duration slow_start = std::chrono::seconds(2);
  };

  Breaker(Options options, Random random) : options_(options), random_(random) {}

  /// Other limits, from now on: a probe that is far off comes as soon as they say.
  void set_options(Options options, Instant now);

  /// May this lane send now? In HALF_OPEN the first one who asks gets the trial.
  bool may_send();
  /// Whoever had the trial has nothing to send after all.
  void give_back() { trial_ = false; }
  /// How a call ended. A record that is poison or a duplicate proves that the sink is up.
  void succeeded(Instant now);
  /// It failed and may be tried again in place. True: it opened. `retry_after`: the sink asks to be
  /// left alone for so long; no probe comes sooner.
  bool failed(std::string why, Instant now, Duration retry_after = {});
  /// The retries of an outage are spent, or the connection cannot be made.
  void open(std::string why, Instant now, Duration retry_after = {});
  /// Every record would fail. Until resume().
  void halt(std::string why, Instant now);
  /// An operator has looked.
  void resume(Instant now);

  /// OPEN: when to probe next.
  [[nodiscard]] std::optional<Instant> probe_at() const;
  void probed(bool good, std::string why, Instant now);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] std::optional<Instant> outage_since() const { return outage_since_; }
  [[nodiscard]] bool outage_is_too_long(Instant now) const;
  /// After an outage batches grow back to this part of their size, in percent.
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
  bool trial_ = false;  // HALF_OPEN: somebody has it.
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
