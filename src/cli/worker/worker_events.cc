#include "cli/worker/worker_events.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/logging/log.h"
#include "base/time.h"
#include "cli/base/parse.h"
#include "worker/runner/runner.h"

namespace baton::cli {
namespace {

using worker::HostEvent;
using Kind = HostEvent::Kind;

// When more lines than this wait, further ones are dropped.
constexpr std::size_t kLinesMax = 10'000;
constexpr std::chrono::seconds kLastWords{2};

constexpr std::array<std::string_view, 9> kNames = {
    "started", "acquired", "revoking",        "stopped",      "lost",
    "renewed", "note",     "handler_started", "handler_ended"};

bool is_about_partition(Kind kind) {
  return kind != Kind::started && kind != Kind::renewed && kind != Kind::note;
}

Milliseconds to_ms(Duration duration) { return std::chrono::round<Milliseconds>(duration); }

/// The time of the event by the wall clock.
std::chrono::system_clock::time_point wall_time(Instant at) {
  using std::chrono::system_clock;
  const auto ago = worker::boot_time() - at;
  return system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago);
}

bool is_warning(const HostEvent& event) {
  return event.kind == Kind::lost || event.kind == Kind::handler_ended ||
         (event.kind == Kind::note && event.warning);
}

/// The members of an object as the fields of a log line, without instants of the machine's clock,
/// which mean nothing to people.
std::string to_fields(const Json& object) {
  std::string out;
  for (const auto& [name, value] : object.items()) {
    if (name == "time" || name == "level" || name.ends_with("_ns")) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, log_value(printable(text)));
  }
  return out;
}

Json begin_line(Instant at, bool warning) {
  return Json{{"time", log_time(wall_time(at))}, {"level", warning ? "warning" : "info"}};
}

std::string to_text(const Json& line) {
  return fmt::format("{} {} {}", line.at("time").get<std::string>(),
                     line.at("level").get<std::string>(), to_fields(line));
}

}  // namespace

Json to_json(const HostEvent& event) {
  Json out = begin_line(event.at, is_warning(event));
  out["event"] = kNames.at(static_cast<std::size_t>(event.kind));
  if (is_about_partition(event.kind)) {
    out["partition"] = event.task.partition;
    out["epoch"] = event.task.epoch;
  }
  out["at_ns"] = event.at.ns;
  out["worker"] = event.worker;
  switch (event.kind) {
    case Kind::revoking: out["time_left_ms"] = to_ms(event.time).count(); break;
    case Kind::lost: out["why"] = event.text; break;
    case Kind::renewed: out["deadline_ns"] = event.time.count(); break;
    case Kind::note:
      out["warning"] = event.warning;
      out["text"] = event.text;
      break;
    case Kind::handler_started: out["pid"] = event.pid; break;
    case Kind::handler_ended:
      out["code"] = event.code;
      if (event.lease_over) {
        out["lease_over"] = true;
      } else {
        out["restart_in_ms"] = to_ms(event.time).count();
      }
      break;
    default: break;
  }
  return out;
}

std::string describe(const HostEvent& event) { return to_text(to_json(event)); }

EventPrinter::~EventPrinter() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool EventPrinter::flush() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kLastWords, [this] { return lines_.empty() && idle_; });
}

void EventPrinter::print(const HostEvent& event) {
  if (event.kind == Kind::renewed && !options_.renewals) return;
  const std::scoped_lock lock(mutex_);
  add(options_.json ? dump(to_json(event)) : describe(event));
}

void EventPrinter::print_finished(const std::string& worker, const Status& status) {
  const Instant at = worker::boot_time();
  const std::scoped_lock lock(mutex_);
  Json out = begin_line(at, !status);
  out["event"] = "finished";
  out["at_ns"] = at.ns;
  out["worker"] = worker;
  out["clean"] = status.has_value();
  if (!status) out["error"] = to_json(status.error());
  add(options_.json ? dump(out) : to_text(out));
}

/// Under mutex_.
void EventPrinter::add(std::string line) {
  if (lines_.size() >= kLinesMax) {
    ++dropped_;
    return;
  }
  lines_.push_back(std::move(line));
  changed_.notify_all();
}

void EventPrinter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !lines_.empty() || ending_; });
    if (lines_.empty()) return;
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    lines_.clear();
    const std::uint64_t dropped = std::exchange(dropped_, 0);
    idle_ = false;
    lock.unlock();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    if (dropped > 0) fmt::print(stderr, "baton: {} events were not printed\n", dropped);
    lock.lock();
    idle_ = true;
    changed_.notify_all();
  }
}

}  // namespace baton::cli
