#include "pipeline/status.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

using Json = nlohmann::json;

std::vector<std::pair<std::string_view, std::uint64_t>> counts(const Counters& counters) {
  return {{"received", counters.received},     {"applied", counters.applied},
          {"duplicates", counters.duplicates}, {"dead_letters", counters.dead_letters},
          {"dropped", counters.dropped},       {"batches", counters.batches},
          {"retries", counters.retries},       {"outages", counters.outages},
          {"isolations", counters.isolations}};
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Json to_json(const PartitionStatus& partition) {
  Json json{{"partition", partition.partition},
            {"epoch", partition.epoch},
            {"committed", partition.committed},
            {"contiguous", partition.progress.committable},
            {"highest_done", partition.progress.highest_done},
            {"waiting", partition.progress.waiting},
            {"in_flight", partition.progress.in_flight}};
  if (partition.end.has_value()) json["lag"] = *partition.end - partition.progress.committable;
  return json;
}

}  // namespace

std::string status_json(const std::string& name, const Engine& engine) {
  const EngineStatus status = engine.status();
  Json json{{"name", name},
            {"breaker", {{"state", to_string(status.gate.state)}}},
            {"window", {{"records", status.window_records}, {"bytes", status.window_bytes}}},
            {"counters", Json::object()},
            {"partitions", Json::array()}};
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
  const auto gauge = [&](std::string_view what, double value) {
    text += fmt::format(
        "# TYPE baton_pipeline_{0} gauge\n"
        "baton_pipeline_{0}{{pipeline=\"{1}\"}} {2}\n",
        what, name, value);
  };
  gauge("window_records", static_cast<double>(status.window_records));
  gauge("window_bytes", static_cast<double>(status.window_bytes));
  gauge("breaker_closed", status.gate.state == flow::Breaker::State::closed ? 1 : 0);
  gauge("outage_seconds", status.gate.outage.has_value() ? seconds(*status.gate.outage) : 0);
  text += "# TYPE baton_pipeline_lag_records gauge\n";
  for (const PartitionStatus& partition : status.partitions) {
    if (!partition.end.has_value()) continue;
    text += fmt::format("baton_pipeline_lag_records{{pipeline=\"{}\",partition=\"{}\"}} {}\n", name,
                        partition.partition, *partition.end - partition.progress.committable);
  }
  return text;
}

}  // namespace baton::pipeline
