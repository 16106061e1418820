#include "cli/pipeline/pipeline_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/terminal.h"

namespace baton::cli {
namespace {

using State = flow::Breaker::State;

std::string_view name_of(pipeline::Ending ending) {
  switch (ending) {
    case pipeline::Ending::drained: return "drained";
    case pipeline::Ending::undrained: return "not drained in time";
    case pipeline::Ending::outage: return "source or sink was unavailable for too long";
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
  return std::max<std::int64_t>(lag, 0);
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string state_text(const pipeline::EngineStatus& status) {
  const pipeline::Gate::Shown& gate = status.gate;
  if (gate.state == State::halted) {
    return fmt::format("HALTED, kill -HUP {} goes on: {}", ::getpid(), gate.why);
  }
  if (status.source.has_value()) {
    return fmt::format("source OUT for {:.0f} s", seconds(status.source->time));
  }
  if (gate.state == State::closed) return "sink ok";
  return fmt::format("{} OUT for {:.0f} s", gate.of_letters ? "dead letters" : "sink",
                     seconds(gate.outage.value_or(Duration::zero())));
}

/// The errors that occurred: "errors: 3 outage, 1 retry".
std::string errors_text(const Json& errors) {
  std::string text;
  for (const auto& [name, count] : errors.items()) {
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "\n  errors of the sink: " : ", ", count.dump(),
                        name);
  }
  return text;
}

/// Which parts of a running or starting pipeline are unavailable or halted.
std::string parts_text(const Json& status) {
  std::string text;
  for (const auto& [field, name] :
       {std::pair{"source", "source"}, {"sink", "sink"}, {"dead_letters", "dead letters"}}) {
    const Json part = status.value(field, Json::object());
    if (part.value("state", "") != "out") continue;
    text += fmt::format("; {} OUT for {:.0f} s: {}", name, part.value("seconds", 0.0),
                        printable(part.value("why", "")));
  }
  return text;
}

std::string head_text(const Json& status) {
  const std::string name = printable(status.value("name", "?"));
  const std::string state = status.value("state", "?");
  const std::string out = parts_text(status);
  if (state == "starting") {
    return paint(Tone::notice, fmt::format("{}: starting{}", name, out));
  }
  if (state != "halted") {
    return out.empty() ? fmt::format("{}: {}", name, paint(Tone::good, "sink ok"))
                       : paint(Tone::alarm, fmt::format("{}: {}", name, out.substr(2)));
  }
  const Json sink = status.value("sink", Json::object());
  const std::string halted =
      fmt::format("{}: HALTED for {:.0f} s: {}", name, sink.value("seconds", 0.0),
                  printable(sink.value("why", "")));
  return fmt::format("{}\n  mend that, then go on with: kill -HUP {}", paint(Tone::alarm, halted),
                     status.value("pid", 0));
}

/// The counters, in the order in which records meet them.
std::string counters_text(const Json& counters) {
  static constexpr auto kNames = std::to_array<std::pair<const char*, const char*>>({
      {"received", "received"},
      {"applied", "applied"},
      {"duplicates", "duplicates"},
      {"dead_letters", "dead letters"},
      {"filtered", "without a value"},
      {"replayed", "in the sink before"},
      {"dropped", "to come again"},
      {"batches", "batches"},
      {"retries", "tried again"},
      {"isolations", "cut in two"},
      {"outages", "outages of the sink"},
  });
  std::string text;
  for (const auto& [field, name] : kNames) {
    const auto count = counters.value(field, std::uint64_t{0});
    text += fmt::format("\n  {:<20}{:>14}", name, format_count(count));
  }
  return text;
}

std::vector<std::string> row_of(const Json& partition) {
  const auto number = [&](const char* name) {
    return std::to_string(partition.value(name, std::int64_t{0}));
  };
  const double behind = partition.value("lag_seconds", 0.0);
  return {number("partition"),
          number("epoch"),
          number("committed"),
          number("contiguous"),
          number("highest_done"),
          number("gaps"),
          number("in_flight"),
          partition.contains("lag") ? number("lag") : "?",
          behind > 0 ? fmt::format("{:.1f} s", behind) : "-"};
}

std::string partitions_text(const Json& partitions) {
  if (partitions.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"PARTITION", "EPOCH", "COMMITTED", "CONTIGUOUS",
                                              "DONE", "GAPS", "IN FLIGHT", "LAG", "BEHIND"}};
  for (const Json& partition : partitions) rows.push_back(row_of(partition));
  return "\n" + format_table(rows);
}

}  // namespace

PipelineProgress::~PipelineProgress() {
  if (drawn_) fmt::print(stderr, "\n");
}

void PipelineProgress::update(const pipeline::Counters& counters,
                              const pipeline::EngineStatus& status) {
  constexpr std::chrono::milliseconds kRedraw{500};
  constexpr std::chrono::seconds kLog{30};
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> passed = now - last_;
  if (!options_.on_terminal && !options_.log) return;
  if (passed < (options_.on_terminal ? kRedraw : std::chrono::milliseconds(kLog))) return;
  const std::uint64_t ended = counters.ended();
  const std::uint64_t moved = ended - std::exchange(ended_, ended);
  last_ = now;
  const std::string text =
      progress_text(counters, status, static_cast<double>(moved) / passed.count());
  if (!options_.on_terminal) {
    if (moved > 0) options_.log(text);
    return;
  }
  // One column is left free: a line that fills the last one may wrap.
  fmt::print(stderr, "\r\x1b[K{}",
             cut_line(printable(text), terminal_size(STDERR_FILENO).columns - 1));
  std::fflush(stderr);
  drawn_ = true;
}

std::string progress_text(const pipeline::Counters& counters, const pipeline::EngineStatus& status,
                          double rate) {
  return fmt::format("{}; {:.0f}/s, lag {}; {} applied, {}, {}", state_text(status), rate,
                     format_count(static_cast<std::uint64_t>(lag_of(status))),
                     format_count(counters.applied), counted(counters.duplicates, "duplicate"),
                     counted(counters.dead_letters, "dead letter"));
}

std::string end_text(const Output& out, const std::string& name, pipeline::Ending ending,
                     const pipeline::Engine* engine) {
  static const pipeline::Counters kNone;
  const pipeline::Counters& counters = engine == nullptr ? kNone : engine->counters();
  const std::uint64_t left = engine == nullptr ? 0 : engine->left_open();
  if (out.json()) {
    return dump(Json{{"pipeline", name},
                     {"ending", name_of(ending)},
                     {"received", counters.received.load()},
                     {"applied", counters.applied.load()},
                     {"duplicates", counters.duplicates.load()},
                     {"dead_letters", counters.dead_letters.load()},
                     {"dropped", counters.dropped.load()},
                     {"to_come_again", left}});
  }
  // Digits without gaps: scripts read this line.
  const std::uint64_t duplicates = counters.duplicates;
  const std::uint64_t letters = counters.dead_letters;
  return fmt::format("{}: {}: {} applied, {} duplicate{}, {} dead letter{}, {} to come again", name,
                     name_of(ending), counters.applied.load(), duplicates,
                     duplicates == 1 ? "" : "s", letters, letters == 1 ? "" : "s", left);
}

std::string status_text(const Json& status) {
  if (!status.is_object()) return "the answer cannot be read";
  std::string text = head_text(status);
  if (!status.contains("counters")) return text;
  text += fmt::format("\n  {:.0f} records/s, lag {}", status.value("rate", 0.0),
                      format_count(status.value("lag", std::uint64_t{0})));
  if (status.contains("eta_seconds")) {
    text += fmt::format(", done in {:.0f} s", status["eta_seconds"].get<double>());
  }
  text += counters_text(status["counters"]);
  text += errors_text(status.value("errors", Json::object()));
  return text + partitions_text(status.value("partitions", Json::array()));
}

}  // namespace baton::cli
