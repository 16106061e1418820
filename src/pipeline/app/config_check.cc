#include "pipeline/app/config_check.h"

#include <string>

#include <fmt/format.h>

#include "pipeline/app/registry.h"
#include "pipeline/flow/backoff.h"

namespace baton::pipeline {
namespace {

Status check_sink(const PipelineConfig& config) {
  if (!sink_kind(config.sink.endpoint).takes_rows) {
    const bool has_tables = !config.rows.tables.empty();
    if (!has_tables && config.rows.key.empty()) return {};
    return wrong_at(config, has_tables ? "tables" : "key",
                    fmt::format("tables and key are of {}, not of {}", names_of_row_sinks(),
                                config.sink.endpoint.kind_name()));
  }
  BATON_TRY_STATUS(
      need(config, config.schema_file, "schema", "the JSON Schema that records must match"));
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
  const Endpoint& source = config.source.endpoint;
  const Endpoint& sink = config.sink.endpoint;
  if (!source_kind(source).has_offsets) {
    return wrong(fmt::format("needs offsets, which a {} does not have", source.kind_name()));
  }
  if (!sink_kind(sink).has_transactions) {
    return wrong(
        fmt::format("needs a sink with transactions, which {} does not have", sink.kind_name()));
  }
  if (config.engine.lane.duplicates_are_dead_letters) {
    return wrong("does not go with on_duplicate: dead_letter");
  }
  if (config.engine.order == Order::none) return wrong("needs order: key or partition");
  return {};
}

Status check_source(const PipelineConfig& config) {
  const SourceKind& kind = source_kind(config.source.endpoint);
  if (kind.check != nullptr) BATON_TRY_STATUS(kind.check(config));
  return check_source_settings(config);
}

/// Checks settings that are valid by themselves, but not together.
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

Status check_config(const PipelineConfig& config) {
  BATON_TRY_STATUS(need(config, config.name, "name", ""));
  BATON_TRY_STATUS(
      need(config, config.source.endpoint.url, "source.url", "where records come from"));
  BATON_TRY_STATUS(need(config, config.sink.endpoint.url, "sink.url", "where records go"));
  BATON_TRY_STATUS(need(config, config.dead_letters.endpoint.url, "dead_letters.url",
                        "where records go that cannot be written"));
  BATON_TRY_STATUS(check_source(config));
  BATON_TRY_STATUS(check_limits(config));
  BATON_TRY_STATUS(check_dead_letters(config));
  BATON_TRY_STATUS(check_sink(config));
  return check_delivery(config);
}

}  // namespace baton::pipeline
