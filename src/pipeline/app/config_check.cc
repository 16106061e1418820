#include "pipeline/app/config_check.h"
#include "pipeline/flow/backoff.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace baton::pipeline {
namespace {

/// Where `path` was given, or else the first of what it holds; nothing if it was not.
const PipelineConfig::Given* find_given(const PipelineConfig& config, std::string_view path) {
  const PipelineConfig::Given* first = nullptr;
  for (auto at = config.given.lower_bound(std::string(path)); at != config.given.end(); ++at) {
    if (!at->first.starts_with(path)) break;
    if (first == nullptr || at->second.line < first->line) first = &at->second;
    if (at->first.size() == path.size()) break;
  }
  return first;
}

std::string place_of(const PipelineConfig& config, std::string_view path) {
  while (!path.empty()) {
    if (const auto* given = find_given(config, path)) {
      return given->line > 0 ? fmt::format("{}:{}", config.file, given->line)
                             : fmt::format("environment {}", given->variable);
    }
    const std::size_t dot = path.rfind('.');
    path = path.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  return config.file;
}

Status need(const PipelineConfig& config, const std::string& value, std::string_view path,
            std::string_view because) {
  if (!value.empty()) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: {} is missing{}{}", config.file, path,
                                                   because.empty() ? "" : ": ", because)};
}

Status check_sink(const PipelineConfig& config) {
  const std::string& kind = config.sink.endpoint.kind;
  if (!config.is_sql()) {
    const bool has_tables = !config.rows.tables.empty();
    if (!has_tables && config.rows.key.empty()) return {};
    return wrong_at(config, has_tables ? "tables" : "key",
                    fmt::format("tables and key are of sqlite and postgres, not of {}", kind));
  }
  BATON_TRY_STATUS(
      need(config, config.schema_file, "schema", "the JSON Schema that records must keep"));
  if (config.rows.tables.empty()) return need(config, "", "tables", "where records go");
  if (config.rows.key.empty() && !config.engine.exactly_once) {
    return need(config, "", "key",
                "without it a record that comes again would be there twice; name the column that "
                "tells one record from another, or set delivery: exactly_once_effect");
  }
  std::string part;
  const auto mapping = schema::Mapping::compile(config.rows, &part);
  if (!mapping.has_value()) return wrong_at(config, part, mapping.error().text);
  return {};
}

Status check_delivery(const PipelineConfig& config) {
  if (!config.engine.exactly_once) return {};
  const auto wrong = [&](std::string_view why) {
    return wrong_at(config, "delivery", fmt::format("exactly_once_effect {}", why));
  };
  if (config.source.endpoint.kind == "baton-queue") {
    return wrong("needs offsets, which a baton-queue has not");
  }
  if (!config.is_sql()) {
    return wrong(
        fmt::format("needs a sink with transactions, which {} has not", config.sink.endpoint.kind));
  }
  if (config.engine.lane.duplicates_are_dead_letters) {
    return wrong("does not go with on_duplicate: dead_letter");
  }
  if (config.engine.order == Order::none) return wrong("needs order: key or partition");
  return {};
}

Status check_source(const PipelineConfig& config) {
  const std::string& kind = config.source.endpoint.kind;
  if (kind == "nats" && config.source.partitions == 0) {
    return need(config, "", "source.partitions", "into how many the subject is divided");
  }
  if (kind != "nats" && config.source.partitions != 0) {
    return wrong_at(config, "source.partitions", fmt::format("is of nats, not of {}", kind));
  }
  if (kind == "kafka") return {};
  for (const std::string_view path : {"source.properties", "source.session_timeout", "id"}) {
    if (find_given(config, path) == nullptr) continue;
    return wrong_at(config, path, fmt::format("is of kafka, not of {}", kind));
  }
  return {};
}

/// Settings that are right by themselves, and not beside each other.
Status check_limits(const PipelineConfig& config) {
  const EngineOptions& engine = config.engine;
  const bool is_given = find_given(config, "batch.records") != nullptr;
  if (is_given && engine.lane.batch_records > engine.window_records) {
    return wrong_at(config, "batch.records",
                    fmt::format("{} is more than window.records, {}: no batch would ever be full",
                                engine.lane.batch_records, engine.window_records));
  }
  const auto check_order = [&](const char* path, const flow::Backoff& backoff) -> Status {
    if (backoff.first <= backoff.most) return {};
    const std::string first = fmt::format("{}.first", path);
    return wrong_at(config, first,
                    fmt::format("{} is more than {}.most, {}", format_duration(backoff.first), path,
                                format_duration(backoff.most)));
  };
  BATON_TRY_STATUS(check_order("retry", engine.lane.backoff));
  return check_order("probe", engine.breaker.probe);
}

Status check_dead_letters(const PipelineConfig& config) {
  if (!is_same_place(config.source.endpoint, config.dead_letters.endpoint)) return {};
  return wrong_at(config, "dead_letters.url",
                  "is the source itself: what cannot be written would come again, for ever");
}

}  // namespace

Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why) {
  return {Errc::invalid_argument, fmt::format("{}: {}: {}", place_of(config, path), path, why)};
}

Error with_place(const PipelineConfig& config, std::string_view path, const Error& error) {
  return {error.code, fmt::format("{}: {}: {}", place_of(config, path), path, error.text)};
}

Status check_config(const PipelineConfig& config) {
  BATON_TRY_STATUS(need(config, config.name, "name", ""));
  BATON_TRY_STATUS(
      need(config, config.source.endpoint.kind, "source.url", "where records come from"));
  BATON_TRY_STATUS(need(config, config.sink.endpoint.kind, "sink.url", "where records go"));
  BATON_TRY_STATUS(need(config, config.dead_letters.endpoint.kind, "dead_letters.url",
                        "where records go that cannot be written"));
  BATON_TRY_STATUS(check_source(config));
  BATON_TRY_STATUS(check_limits(config));
  BATON_TRY_STATUS(check_dead_letters(config));
  BATON_TRY_STATUS(check_sink(config));
  return check_delivery(config);
}

}  // namespace baton::pipeline
