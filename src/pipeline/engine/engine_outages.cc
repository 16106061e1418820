// How an Engine handles a source, a sink or dead letters that are unavailable: it waits, logs, asks
// again, and ends when the outage lasts too long.

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "pipeline/engine/engine.h"

namespace baton::pipeline {
namespace {

std::string seconds_text(Duration duration) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(duration).count());
}

/// What an operator must know of a halt: the reason, and how to resume.
std::string halted_text(std::string_view why) {
  return fmt::format(
      "HALTED: {}. Nothing is lost, and nothing moves: mend that, then go on with 'kill -HUP {}'",
      why, ::getpid());
}

}  // namespace

/// If the source becomes unavailable at this moment, the engine waits for it as in a run.
Status Engine::start_source(const std::stop_token& stop) {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  Random random = Random(options_.seed).fork("source");
  for (std::uint32_t attempt = 1;; ++attempt) {
    const Status started = source_.start(*this);
    if (started.has_value() || !may_pass(started.error())) return started;
    set_source_trouble(started.error().text);
    const Instant again = boot_time() + options_.breaker.probe.steady(attempt, random);
    while (boot_time() < again) {
      look_for_end();
      if (stop.stop_requested() || early_end().has_value()) return started;
      std::this_thread::sleep_for(kStep);
    }
  }
}

std::optional<Outage> Engine::source_outage() const {
  const std::scoped_lock lock(mutex_);
  if (!source_out_since_.has_value()) return std::nullopt;
  return Outage{.why = source_trouble_, .time = boot_time() - *source_out_since_};
}

void Engine::set_source_trouble(std::optional<std::string> why) {
  const std::optional<Outage> before = source_outage();
  {
    const std::scoped_lock lock(mutex_);
    if (why.has_value() && !before.has_value()) source_out_since_ = boot_time();
    if (!why.has_value()) source_out_since_.reset();
    source_trouble_ = why.value_or("");
  }
  if (why.has_value() && !before.has_value()) {
    log(true, fmt::format("source OUT: {}; waiting", *why));
  } else if (!why.has_value() && before.has_value()) {
    log(false, fmt::format("source ok again, after {}", seconds_text(before->time)));
  }
}

void Engine::follow_source() { set_source_trouble(source_.trouble()); }

void Engine::look_for_end() {
  std::optional<Ending> end;
  const std::optional<Outage> source = source_outage();
  const Duration limit = outage_max();
  if (source.has_value() && limit > Duration::zero() && source->time >= limit) {
    log(true, "the source is out for longer than max_outage: ending");
    end = Ending::outage;
  } else if (gate_.outage_is_too_long()) {
    log(true, fmt::format("{} for longer than max_outage: ending",
                          gate_.shown().of_letters ? "dead letters are out" : "the sink is out"));
    end = Ending::outage;
  } else if (is_fenced_for_good()) {
    log(true,
        "the sink holds another for the owner of a partition that is ours: ending, so that it is "
        "claimed anew. Is there a second pipeline of this name, with another group?");
    end = Ending::fenced;
  }
  const std::scoped_lock lock(mutex_);
  early_end_ = failure_.has_value() ? Ending::source_failed : end;
}

/// A process that was away for a while is fenced by the sink first, and soon loses the partition in
/// the source. If the source keeps it, two processes have claimed it in the sink at once, and the
/// other claimed last.
bool Engine::is_fenced_for_good() {
  const std::scoped_lock lock(mutex_);
  const bool fenced = std::ranges::any_of(assignments_, [](const auto& one) {
    return one.second->fenced() && !one.second->revoking();
  });
  if (!fenced) fenced_since_.reset();
  if (fenced && !fenced_since_.has_value()) fenced_since_ = boot_time();
  return fenced && boot_time() - *fenced_since_ > options_.fenced_max;
}

void Engine::probe() {
  const std::optional<Instant> at = gate_.probe_at();
  if (!at.has_value() || boot_time() < *at) return;
  const std::optional<flow::SinkError> error = sink_.probe();
  if (!error.has_value()) {
    log(false, "the sink answers again: trying one batch");
    return gate_.probed(std::nullopt);
  }
  gate_.probed(error->text);
}

/// An open breaker pauses the source; the group membership stays. Half open, the breaker needs a
/// real batch. After a rebalance there may be none here, so the source is resumed to bring one.
void Engine::follow_gate() {
  const bool closed = gate_.closed();
  const bool on_trial = !closed && gate_.shown().state == flow::Breaker::State::half_open &&
                        (!paused_ || window_.records() == 0);
  const bool should_pause = !closed && !on_trial;
  if (should_pause == paused_) return;
  paused_ = should_pause;
  if (paused_) {
    source_.pause();
  } else {
    if (!closed) log(false, "the trial needs a batch: fetching one");
    source_.resume();
  }
}

/// Logs what has changed since the last log line: once, and not by every lane.
void Engine::tell_of_gate() {
  using State = flow::Breaker::State;
  counters_.outages = gate_.outages();
  Gate::Shown now = gate_.shown();
  // probe() logs a trial.
  if (now.state == State::half_open) return;
  const bool is_same = now.state == told_.state && now.of_letters == told_.of_letters;
  const Gate::Shown before = std::exchange(told_, now);
  if (is_same) return;
  const std::string_view what = now.of_letters ? "dead letters" : "sink";
  switch (now.state) {
    case State::halted: return log(true, halted_text(now.why));
    case State::open: return log(true, fmt::format("{} OUT: {}; waiting", what, now.why));
    case State::half_open:
    case State::closed: break;
  }
  log(false, fmt::format("{} ok again, after {}", before.of_letters ? "dead letters" : "sink",
                         seconds_text(before.outage.value_or(Duration::zero()))));
}

}  // namespace baton::pipeline
