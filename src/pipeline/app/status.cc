#include "pipeline/app/status.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pipeline/flow/breaker.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;
using State = flow::Breaker::State;

struct Count {
  std::string_view name;
  std::string_view help;  // The help text for Prometheus.
  std::uint64_t value = 0;
};

std::vector<Count> counts(const Counters& counters) {
  return {
      {"received", "Records taken in from the source.", counters.received},
      {"applied", "Records written to the sink, those that were there already included.",
       counters.applied},
      {"duplicates", "Records whose key another record had already written to the sink.",
       counters.duplicates},
      {"dead_letters", "Records written to the dead letters, and confirmed there.",
       counters.dead_letters},
      {"filtered", "Records without a value: there is nothing to write.", counters.filtered},
      {"dropped",
       "Records dropped before they were done: this or another process reads them again.",
       counters.dropped},
      {"replayed", "Records that were already in the sink, by its marks.", counters.replayed},
      {"batches", "Batches written.", counters.batches},
      {"retries", "Batches tried again.", counters.retries},
      {"outages", "How often the sink became unavailable.", counters.outages},
      {"isolations", "Batches cut in two to find a bad record.", counters.isolations},
  };
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Records in the source that are not finished; nullopt if the source cannot tell.
std::optional<std::int64_t> lag_of(const PartitionStatus& partition) {
  if (!partition.end.has_value()) return std::nullopt;
  return std::max<std::int64_t>(0, *partition.end - partition.progress.committable);
}

/// The age of the newest record that was read, while there is more to do.
double lag_seconds_of(const PartitionStatus& partition) {
  if (lag_of(partition).value_or(0) == 0 || partition.progress.newest.count() == 0) return 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::max(0.0, std::chrono::duration<double>(now - partition.progress.newest).count());
}

std::int64_t lag_of(const EngineStatus& status) {
  std::int64_t sum = 0;
  for (const PartitionStatus& partition : status.partitions) sum += lag_of(partition).value_or(0);
  return sum;
}

/// The time until all records are finished, at the present rate; nullopt if no record moves or none
/// is left.
std::optional<double> eta_of(const EngineStatus& status) {
  if (!status.moving || !status.is_ready() || status.rate <= 0 || lag_of(status) == 0) {
    return std::nullopt;
  }
  return static_cast<double>(lag_of(status)) / status.rate;
}

std::string_view word_of(State state) {
  switch (state) {
    case State::closed: return "ok";
    case State::halted: return "halted";
    case State::open:
    case State::half_open: break;
  }
  return "out";
}

/// {"state":"out","seconds":12.3,"why":"connection refused"}.
Json to_json(std::string_view state, const std::optional<Outage>& outage) {
  Json json{{"state", state}};
  if (!outage.has_value()) return json;
  json["seconds"] = seconds(outage->time);
  json["why"] = outage->why;
  return json;
}

Json sink_json(const Gate::Shown& gate, bool letters) {
  const bool is_out = gate.state != State::closed && gate.of_letters == letters;
  if (!is_out) return to_json("ok", std::nullopt);
  return to_json(word_of(gate.state),
                 Outage{.why = gate.why, .time = gate.outage.value_or(Duration::zero())});
}

Json to_json(const PartitionStatus& partition) {
  Json json{{"partition", partition.partition},
            {"epoch", partition.epoch},
            {"committed", partition.committed},
            {"contiguous", partition.progress.committable},
            {"highest_done", partition.progress.highest_done},
            {"gaps", partition.progress.waiting},
            {"in_flight", partition.progress.in_flight}};
  if (const auto lag = lag_of(partition)) {
    json["lag"] = *lag;
    json["lag_seconds"] = lag_seconds_of(partition);
  }
  return json;
}

/// Text for Prometheus: each metric once, with its help, and then its samples.
class Metrics {
 public:
  explicit Metrics(const std::string& pipeline) : pipeline_(pipeline) {}

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP baton_pipeline_{0} {2}\n# TYPE baton_pipeline_{0} {1}\n", name,
                         type, help);
  }
  void sample(double value, std::string_view label = "", std::string_view label_value = "") {
    const std::string more =
        label.empty() ? std::string() : fmt::format(",{}=\"{}\"", label, label_value);
    text_ +=
        fmt::format("baton_pipeline_{}{{pipeline=\"{}\"{}}} {}\n", name_, pipeline_, more, value);
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    begin(name, "gauge", help);
    sample(value);
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  const std::string& pipeline_;
  std::string_view name_;
  std::string text_;
};

struct PartitionGauge {
  std::string_view name;
  std::string_view help;
  double (*value)(const PartitionStatus&);
};

void add_partitions(Metrics& metrics, std::span<const PartitionStatus> partitions) {
  static constexpr std::array kGauges = std::to_array<PartitionGauge>({
      {"committed_offset", "The source knows that everything below this offset is done.",
       [](const PartitionStatus& p) { return static_cast<double>(p.committed); }},
      {"contiguous_offset", "Everything below this offset is done.",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.committable); }},
      {"highest_done_offset", "The highest offset that is done.",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.highest_done); }},
      {"gaps", "Records that are done, behind one that is not.",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.waiting); }},
      {"in_flight", "Records taken in, and not done yet.",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.in_flight); }},
      {"lag_records", "Records in the source that are not done yet.",
       [](const PartitionStatus& p) { return static_cast<double>(lag_of(p).value_or(0)); }},
      {"lag_seconds", "Age of the newest record that was read, while there is more to do.",
       [](const PartitionStatus& p) { return lag_seconds_of(p); }},
  });
  for (const PartitionGauge& gauge : kGauges) {
    metrics.begin(gauge.name, "gauge", gauge.help);
    for (const PartitionStatus& one : partitions) {
      metrics.sample(gauge.value(one), "partition", std::to_string(one.partition));
    }
  }
}

void add_counters(Metrics& metrics, const Counters& counters) {
  for (const Count& count : counts(counters)) {
    const std::string name = fmt::format("{}_total", count.name);
    metrics.begin(name, "counter", count.help);
    metrics.sample(static_cast<double>(count.value));
  }
  metrics.begin("sink_errors_total", "counter", "Errors of the sink, by what they mean.");
  for (std::size_t i = 0; i < flow::kErrorClasses; ++i) {
    metrics.sample(static_cast<double>(counters.errors.at(i).load()), "class",
                   to_string(static_cast<flow::ErrorClass>(i)));
  }
}

void add_gauges(Metrics& metrics, const EngineStatus& status) {
  metrics.gauge("window_records", "Records in memory.", static_cast<double>(status.window_records));
  metrics.gauge("window_bytes", "Bytes of records in memory.",
                static_cast<double>(status.window_bytes));
  metrics.gauge("records_per_second", "Records done per second.", status.rate);
  if (const auto eta = eta_of(status)) {
    metrics.gauge("eta_seconds", "Seconds until all records are done, at the present rate.", *eta);
  }
  const Gate::Shown& gate = status.gate;
  metrics.gauge("outage_seconds",
                "Seconds since the sink or the dead letters became unavailable; 0 if they answer.",
                gate.outage.has_value() ? seconds(*gate.outage) : 0);
  metrics.begin("breaker", "gauge", "1 for the present state of the sink's breaker.");
  for (const auto state : {State::closed, State::open, State::half_open, State::halted}) {
    metrics.sample(state == gate.state ? 1 : 0, "state", to_string(state));
  }
}

Json running_json(const Engine& engine) {
  const EngineStatus status = engine.status();
  const Gate::Shown& gate = status.gate;
  Json json{{"state", gate.state == State::halted ? "halted" : "running"},
            {"source", to_json(status.source.has_value() ? "out" : "ok", status.source)},
            {"sink", sink_json(gate, false)},
            {"dead_letters", sink_json(gate, true)},
            {"breaker", {{"state", to_string(gate.state)}}},
            {"window", {{"records", status.window_records}, {"bytes", status.window_bytes}}},
            {"rate", status.rate},
            {"lag", lag_of(status)},
            {"counters", Json::object()},
            {"errors", Json::object()},
            {"partitions", Json::array()}};
  if (const auto eta = eta_of(status)) json["eta_seconds"] = *eta;
  for (std::size_t i = 0; i < flow::kErrorClasses; ++i) {
    json["errors"][to_string(static_cast<flow::ErrorClass>(i))] =
        engine.counters().errors.at(i).load();
  }
  if (!gate.why.empty()) json["breaker"]["last_error"] = gate.why;
  if (gate.outage.has_value()) json["breaker"]["outage_seconds"] = seconds(*gate.outage);
  for (const Count& count : counts(engine.counters())) json["counters"][count.name] = count.value;
  for (const PartitionStatus& partition : status.partitions) {
    json["partitions"].push_back(to_json(partition));
  }
  return json;
}

Json starting_json(const Pipeline& pipeline) {
  Json json{{"state", "starting"}};
  const auto waiting = pipeline.waiting();
  for (const auto& [part, name] :
       {std::pair{"source", "source"}, {"sink", "sink"}, {"dead letters", "dead_letters"}}) {
    const bool is_out = waiting.has_value() && waiting->what == part;
    json[name] = is_out ? to_json("out", waiting->outage) : to_json("unknown", std::nullopt);
  }
  return json;
}

std::string out_text(std::string_view what, const Outage& outage) {
  return fmt::format("{} OUT for {:.0f} s: {}", what, seconds(outage.time), outage.why);
}

}  // namespace

std::string why_not_ready(const Pipeline& pipeline) {
  const Engine* engine = pipeline.running();
  if (engine == nullptr) {
    const auto waiting = pipeline.waiting();
    return waiting.has_value() ? out_text(waiting->what, waiting->outage) : "starting";
  }
  const EngineStatus status = engine->status();
  if (status.source.has_value()) return out_text("source", *status.source);
  const Gate::Shown& gate = status.gate;
  if (gate.state == State::closed) return {};
  if (gate.state == State::halted) return fmt::format("HALTED: {}", gate.why);
  return out_text(gate.of_letters ? "dead letters" : "sink",
                  {.why = gate.why, .time = gate.outage.value_or(Duration::zero())});
}

std::string status_json(const std::string& name, const Pipeline& pipeline) {
  const Engine* engine = pipeline.running();
  Json json = engine == nullptr ? starting_json(pipeline) : running_json(*engine);
  json["name"] = name;
  json["pid"] = ::getpid();
  json["ready"] = why_not_ready(pipeline).empty();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string metrics_text(const std::string& name, const Pipeline& pipeline) {
  Metrics metrics(name);
  metrics.gauge("ready", "1 if records arrive and the sink takes them; 0: see /readyz.",
                why_not_ready(pipeline).empty() ? 1 : 0);
  const Engine* engine = pipeline.running();
  const auto waiting = pipeline.waiting();
  std::optional<Outage> source;
  if (waiting.has_value() && waiting->what == "source") source = waiting->outage;
  if (engine != nullptr) source = engine->status().source;
  metrics.gauge("source_outage_seconds",
                "Seconds since the source became unavailable; 0 if it answers.",
                source.has_value() ? seconds(source->time) : 0);
  if (engine == nullptr) return std::move(metrics).text();
  const EngineStatus status = engine->status();
  add_counters(metrics, engine->counters());
  add_gauges(metrics, status);
  add_partitions(metrics, status.partitions);
  return std::move(metrics).text();
}

}  // namespace baton::pipeline
