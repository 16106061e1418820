#include "cli_work/pipeline_progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

std::string_view name_of(pipeline::Ending ending) {
  switch (ending) {
    case pipeline::Ending::drained: return "drained";
    case pipeline::Ending::undrained: return "not drained in time";
    case pipeline::Ending::outage: return "the sink was out for too long";
    case pipeline::Ending::fenced: return "fenced: the sink has another owner";
    case pipeline::Ending::source_failed: break;
  }
  return "the source failed";
}

std::int64_t lag_of(const pipeline::EngineStatus& status) {
  std::int64_t lag = 0;
  for (const pipeline::PartitionStatus& partition : status.partitions) {
    if (partition.end.has_value()) lag += *partition.end - partition.progress.committable;
  }
  return lag;
}

/// Those that there were: "errors: 3 outage, 1 retry".
std::string errors_text(const Json& errors) {
  std::string text;
  for (const auto& [name, count] : errors.items()) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "\n  errors: " : ", ", count.dump(), name);
  }
  return text;
}

std::string partition_text(const Json& partition) {
  const auto number = [&](const char* name) { return partition.value(name, std::int64_t{0}); };
  std::string text = fmt::format(
      "  partition {:>3}: epoch {}, committed {}, contiguous {}, highest done {}, gaps {}, in "
      "flight {}, lag {}",
      number("partition"), number("epoch"), number("committed"), number("contiguous"),
      number("highest_done"), number("gaps"), number("in_flight"),
      partition.contains("lag") ? partition["lag"].dump() : "?");
  const double lag_seconds = partition.value("lag_seconds", 0.0);
  if (lag_seconds > 0) text += fmt::format(" ({:.1f} s)", lag_seconds);
  return text;
}

}  // namespace

PipelineProgress::~PipelineProgress() {
  if (drawn_) fmt::print(stderr, "\n");
}

void PipelineProgress::update(const pipeline::Counters& counters,
                              const pipeline::EngineStatus& status) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> passed = now - last_;
  if (!shown_ || passed.count() < 0.5) return;
  const std::uint64_t ended = counters.applied + counters.duplicates + counters.dead_letters;
  const double rate = drawn_ ? static_cast<double>(ended - ended_) / passed.count() : 0;
  fmt::print(stderr,
             "\r\x1b[K{} applied, {} duplicates, {} dead letters; {:.0f}/s, lag {}; sink {}",
             counters.applied.load(), counters.duplicates.load(), counters.dead_letters.load(),
             rate, lag_of(status), to_string(status.gate.state));
  std::fflush(stderr);
  drawn_ = true;
  last_ = now;
  ended_ = ended;
}

std::string end_text(const Output& out, const std::string& name, pipeline::Ending ending,
                     const pipeline::Engine& engine) {
  const pipeline::Counters& counters = engine.counters();
  if (out.json()) {
    return dump(Json{{"pipeline", name},
                     {"ending", name_of(ending)},
                     {"received", counters.received.load()},
                     {"applied", counters.applied.load()},
                     {"duplicates", counters.duplicates.load()},
                     {"dead_letters", counters.dead_letters.load()},
                     {"dropped", counters.dropped.load()},
                     {"to_come_again", engine.left_open()}});
  }
  return fmt::format("{}: {}: {} applied, {} duplicates, {} dead letters, {} to come again", name,
                     name_of(ending), counters.applied.load(), counters.duplicates.load(),
                     counters.dead_letters.load(), engine.left_open());
}

std::string status_text(const Json& status) {
  if (!status.is_object()) return "the answer cannot be read";
  const Json breaker = status.value("breaker", Json::object());
  std::string text =
      fmt::format("{}: sink {}", status.value("name", "?"), breaker.value("state", "?"));
  if (breaker.contains("outage_seconds")) {
    text += fmt::format(", out for {:.0f} s: {}", breaker["outage_seconds"].get<double>(),
                        breaker.value("last_error", ""));
  }
  text += fmt::format("\n  {:.0f} records/s, lag {}", status.value("rate", 0.0),
                      status.value("lag", std::int64_t{0}));
  if (status.contains("eta_seconds")) {
    text += fmt::format(", done in {:.0f} s", status["eta_seconds"].get<double>());
  }
  const Json counters = status.value("counters", Json::object());
  for (const auto& [name, count] : counters.items()) {
    text += fmt::format("\n  {:<14} {:>12}", name, count.get<std::uint64_t>());
  }
  text += errors_text(status.value("errors", Json::object()));
  const Json partitions = status.value("partitions", Json::array());
  for (const Json& partition : partitions) text += "\n" + partition_text(partition);
  return text;
}

}  // namespace baton::cli
