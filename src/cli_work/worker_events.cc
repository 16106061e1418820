#include "cli_work/worker_events.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "cli_base/parse.h"
#include "worker/runner.h"

namespace baton::cli {
namespace {

using worker::HostEvent;
using Kind = HostEvent::Kind;

// More lines than this wait for nobody.
constexpr std::size_t kLinesMax = 10'000;
constexpr std::chrono::seconds kLastWords{2};

constexpr std::array<std::string_view, 9> kNames = {
    "started", "acquired", "revoking",        "stopped",      "lost",
    "renewed", "note",     "handler_started", "handler_ended"};

bool is_about_partition(Kind kind) {
  return kind != Kind::started && kind != Kind::renewed && kind != Kind::note;
}

Milliseconds to_ms(Duration duration) { return std::chrono::round<Milliseconds>(duration); }

/// "08:30:00.123", local time.
std::string clock_text(Instant at) {
  using std::chrono::system_clock;
  const auto ago = worker::boot_time() - at;
  const auto wall = std::chrono::floor<Milliseconds>(
      system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(wall);
  return fmt::format("{:%H:%M:%S}.{:03}", fmt::localtime(system_clock::to_time_t(seconds)),
                     (wall - seconds).count());
}

std::string event_text(const HostEvent& event) {
  switch (event.kind) {
    case Kind::started: return "started";
    case Kind::acquired: return fmt::format("acquired, epoch {}", event.task.epoch);
    case Kind::revoking:
      return fmt::format("revoking, {} to stop", format_duration(to_ms(event.time)));
    case Kind::stopped: return "stopped";
    case Kind::lost: return fmt::format("LOST: {}", event.text);
    case Kind::renewed: return "renewed";
    case Kind::note: return fmt::format("{}{}", event.warning ? "WARNING: " : "", event.text);
    case Kind::handler_started: return fmt::format("handler runs as process {}", event.pid);
    case Kind::handler_ended:
      if (event.lease_over) {
        return fmt::format("handler ended with {}: the lease is about to run out", event.code);
      }
      return fmt::format("handler ended with {}; starts again in {}", event.code,
                         format_duration(to_ms(event.time)));
  }
  return {};
}

}  // namespace

Json to_json(const HostEvent& event) {
  Json out{{"event", kNames.at(static_cast<std::size_t>(event.kind))}};
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

std::string describe(const HostEvent& event) {
  const std::string about =
      is_about_partition(event.kind) ? fmt::format("partition {}: ", event.task.partition) : "";
  return fmt::format("{} {}{}", clock_text(event.at), about, printable(event_text(event)));
}

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

void EventPrinter::print_finished(const std::string& worker, const client::Status& status) {
  const Instant at = worker::boot_time();
  const std::scoped_lock lock(mutex_);
  if (!options_.json) {
    return add(fmt::format("{} {}", clock_text(at), status ? "left" : "ended by an error"));
  }
  Json out{
      {"event", "finished"}, {"at_ns", at.ns}, {"worker", worker}, {"clean", status.has_value()}};
  if (!status) out["error"] = to_json(status.error());
  add(dump(out));
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
