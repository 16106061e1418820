#include "cluster/loglet/pump.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace baton::loglet {
namespace {

Appender::Options options_for(Appender::Options options, const Loglet& engine) {
  options.entry_bytes_max = std::min(options.entry_bytes_max, engine.entry_bytes_max());
  return options;
}

}  // namespace

Pump::Pump(const Options& options, Loglet& engine, const Appender::Begin& begin)
    : patience_(options.patience),
      engine_(engine),
      appender_(options_for(options.appender, engine), begin),
      call_(options.patience.read_timeout),
      silence_(options.patience.silence),
      sequence_(begin.sequence) {}

void Pump::turn(Instant now) {
  bool reconnected = false;
  for (const Loglet::Answer& answer : engine_.take_answers()) {
    reconnected = reconnected || answer.kind == Loglet::Answer::Kind::connected;
    take(answer, now);
  }
  if (broken_.has_value() || appender_.fenced()) return;
  appender_.tick(now);
  call_.repeat(engine_, reconnected, now);
  send(now);
  note_progress(now);
  if (silence_.is_over(now)) engine_.redial();
}

void Pump::take(const Loglet::Answer& answer, Instant now) {
  using enum Loglet::Answer::Kind;
  switch (answer.kind) {
    case stored:
      unable_.reset();
      appender_.answered(answer.request, answer.sequence);
      break;
    case refused: appender_.refused(answer.request); break;
    case unable:
      unable_ = answer.error;
      pace(now);
      appender_.refused(answer.request);
      break;
    case entries:
      if (call_.take(answer)) take_entries(answer, now);
      break;
    case connected: appender_.reconnected(); break;
    case trimmed: break;
  }
  silence_.heard(!appender_.idle() || call_.under_way(), now);
}

void Pump::take_entries(const Loglet::Answer& answer, Instant now) {
  const Status taken = appender_.take_read(answer.entries);
  if (!taken.has_value()) {
    if (taken.error().code != Errc::malformed || ++damaged_ > patience_.damaged_max) {
      broken_ = Error{
          Errc::journal_corrupt,
          fmt::format("entry {} of the log: {}", appender_.sequence() + 1, taken.error().text)};
      return;
    }
    // Another copy may be sound.
    pace(now);
    appender_.reconnected();
    return;
  }
  damaged_ = 0;
  // The end was found: what follows it may be refused again, by a copy that is ahead of this one.
  if (answer.entries.empty()) pace(now);
}

/// The next read comes later than the last one did.
void Pump::pace(Instant now) {
  pause_ = std::clamp(pause_ * 2, patience_.pause_min, patience_.pause_max);
  read_at_ = now + pause_;
}

void Pump::send(Instant now) {
  if (!call_.under_way() && now >= read_at_) {
    if (const auto wanted = appender_.take_read_request()) {
      call_.begin(engine_, wanted->after, now);
    }
  }
  for (const Appender::Send& one : appender_.take_sends(now)) {
    engine_.append(one.request, one.bytes, one.expected);
    silence_.asked(now);
  }
  if (call_.under_way()) silence_.asked(now);
}

void Pump::note_progress(Instant now) {
  if (std::exchange(sequence_, appender_.sequence()) != appender_.sequence()) {
    pause_ = Duration{0};
    stalled_since_ = Instant::never();
  }
  if (appender_.idle()) {
    stalled_since_ = Instant::never();
  } else if (stalled_since_ == Instant::never()) {
    stalled_since_ = now;
  }
}

Instant Pump::next_deadline() const {
  if (broken_.has_value() || appender_.fenced()) return Instant::never();
  Instant next = std::min({appender_.next_deadline(), call_.deadline(), silence_.deadline()});
  if (appender_.wants_read() && !call_.under_way()) next = std::min(next, read_at_);
  return next;
}

}  // namespace baton::loglet
