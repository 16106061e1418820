#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "cluster/loglet/appender.h"
#include "cluster/loglet/loglet.h"
#include "cluster/loglet/reading.h"

namespace baton::loglet {

/// Runs an Appender on an engine: moves requests and answers between them, repeats reads, paces
/// attempts, and dials another server when all answers stay away. Pure: the caller calls turn()
/// when an answer came, when something was appended, and when next_deadline() has passed.
class Pump {
 public:
  struct Options {
    Appender::Options appender;
    Patience patience;
  };

  Pump(const Options& options, Loglet& engine, const Appender::Begin& begin);

  /// Takes the next round; turn() sends it.
  void append(Instant now, std::string_view facts) { appender_.append(now, facts); }
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;

  [[nodiscard]] const Appender& appender() const { return appender_; }
  /// Nothing more will be confirmed, because the log has damaged entries.
  [[nodiscard]] const std::optional<Error>& broken() const { return broken_; }
  /// Since when something waits and nothing was confirmed; never() if nothing waits.
  [[nodiscard]] Instant stalled_since() const { return stalled_since_; }
  /// The engine's last word on why it stores nothing; empty since it stored something.
  [[nodiscard]] const std::optional<Error>& unable() const { return unable_; }

 private:
  void take(const Loglet::Answer& answer, Instant now);
  void take_entries(const Loglet::Answer& answer, Instant now);
  void send(Instant now);
  void note_progress(Instant now);
  void pace(Instant now);

  Patience patience_;
  Loglet& engine_;
  Appender appender_;
  ReadCall call_;
  Silence silence_;
  Duration pause_{0};
  Instant read_at_;  // No read before.
  std::uint64_t sequence_ = 0;
  Instant stalled_since_ = Instant::never();
  std::optional<Error> unable_;
  std::optional<Error> broken_;
  int damaged_ = 0;
};

}  // namespace baton::loglet
