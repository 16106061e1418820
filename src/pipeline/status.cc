#include "pipeline/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;

std::vector<std::pair<std::string_view, std::uint64_t>> counts(const Counters& counters) {
  return {{"received", counters.received},     {"applied", counters.applied},
          {"duplicates", counters.duplicates}, {"dead_letters", counters.dead_letters},
          {"filtered", counters.filtered},     {"dropped", counters.dropped},
          {"replayed", counters.replayed},     {"batches", counters.batches},
          {"retries", counters.retries},       {"outages", counters.outages},
          {"isolations", counters.isolations}};
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Records that are there and not seen to their end; nothing when the source cannot say.
std::optional<std::int64_t> lag_of(const PartitionStatus& partition) {
  if (!partition.end.has_value()) return std::nullopt;
  return std::max<std::int64_t>(0, *partition.end - partition.progress.committable);
}

/// How old the newest record is that was read, while there is more to do.
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

/// Until nothing is left to do, at the rate of now; nothing: it stands still.
std::optional<double> eta_of(const EngineStatus& status) {
  if (status.rate <= 0) return std::nullopt;
  return static_cast<double>(lag_of(status)) / status.rate;
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

/// Each gauge once, then its partitions, as Prometheus wants it.
std::string partition_metrics(const std::string& name, const EngineStatus& status) {
  using Value = double (*)(const PartitionStatus&);
  static constexpr std::array<std::pair<std::string_view, Value>, 7> kGauges = {{
      {"committed_offset",
       [](const PartitionStatus& p) { return static_cast<double>(p.committed); }},
      {"contiguous_offset",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.committable); }},
      {"highest_done_offset",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.highest_done); }},
      {"gaps", [](const PartitionStatus& p) { return static_cast<double>(p.progress.waiting); }},
      {"in_flight",
       [](const PartitionStatus& p) { return static_cast<double>(p.progress.in_flight); }},
      {"lag_records",
       [](const PartitionStatus& p) { return static_cast<double>(lag_of(p).value_or(0)); }},
      {"lag_seconds", [](const PartitionStatus& p) { return lag_seconds_of(p); }},
  }};
  std::string text;
  for (const auto& [gauge, value] : kGauges) {
    text += fmt::format("# TYPE baton_pipeline_{} gauge\n", gauge);
    for (const PartitionStatus& partition : status.partitions) {
      text += fmt::format("baton_pipeline_{}{{pipeline=\"{}\",partition=\"{}\"}} {}\n", gauge, name,
                          partition.partition, value(partition));
    }
  }
  return text;
}

}  // namespace

std::string status_json(const std::string& name, const Engine& engine) {
  const EngineStatus status = engine.status();
  Json json{{"name", name},
            {"breaker", {{"state", to_string(status.gate.state)}}},
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
  if (!status.gate.why.empty()) json["breaker"]["last_error"] = status.gate.why;
  if (status.gate.outage.has_value()) {
    json["breaker"]["outage_seconds"] = seconds(*status.gate.outage);
  }
  for (const auto& [counter, value] : counts(engine.counters())) json["counters"][counter] = value;
  for (const PartitionStatus& partition : status.partitions) {
    json["partitions"].push_back(to_json(partition));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string metrics_text(const std::string& name, const Engine& engine) {
  const EngineStatus status = engine.status();
  std::string text;
  for (const auto& [counter, value] : counts(engine.counters())) {
    text += fmt::format(
        "# TYPE baton_pipeline_{0}_total counter\n"
        "baton_pipeline_{0}_total{{pipeline=\"{1}\"}} {2}\n",
        counter, name, value);
  }
  text += "# TYPE baton_pipeline_sink_errors_total counter\n";
  for (std::size_t i = 0; i < flow::kErrorClasses; ++i) {
    text += fmt::format("baton_pipeline_sink_errors_total{{pipeline=\"{}\",class=\"{}\"}} {}\n",
                        name, to_string(static_cast<flow::ErrorClass>(i)),
                        engine.counters().errors.at(i).load());
  }
  const auto gauge = [&](std::string_view what, double value) {
    text += fmt::format(
        "# TYPE baton_pipeline_{0} gauge\n"
        "baton_pipeline_{0}{{pipeline=\"{1}\"}} {2}\n",
        what, name, value);
  };
  gauge("window_records", static_cast<double>(status.window_records));
  gauge("window_bytes", static_cast<double>(status.window_bytes));
  gauge("rate", status.rate);
  if (const auto eta = eta_of(status)) gauge("eta_seconds", *eta);
  gauge("outage_seconds", status.gate.outage.has_value() ? seconds(*status.gate.outage) : 0);
  text += "# TYPE baton_pipeline_breaker gauge\n";
  for (const auto state : {flow::Breaker::State::closed, flow::Breaker::State::open,
                           flow::Breaker::State::half_open, flow::Breaker::State::halted}) {
    text += fmt::format("baton_pipeline_breaker{{pipeline=\"{}\",state=\"{}\"}} {}\n", name,
                        to_string(state), state == status.gate.state ? 1 : 0);
  }
  return text + partition_metrics(name, status);
}

}  // namespace baton::pipeline
