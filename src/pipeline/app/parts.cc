#include "pipeline/app/parts.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "pipeline/app/example.h"
#include "pipeline/app/registry.h"
#include "pipeline/orders/orders.h"
#include "pipeline/schema/json_schema.h"

namespace baton::pipeline {
namespace {

Result<std::optional<schema::Schema>> compile_schema(const PipelineConfig& config,
                                                     const std::string& text) {
  if (config.schema_file.empty()) return std::nullopt;
  auto schema = schema::Schema::compile(text);
  if (!schema.has_value()) {
    return wrong_at(config, "schema",
                    fmt::format("{}: {}", config.schema_file, schema.error().text));
  }
  return *std::move(schema);
}

Result<schema::Mapping> compile_mapping(const PipelineConfig& config,
                                        const schema::Schema& schema) {
  BATON_TRY(schema::Mapping mapping, schema::Mapping::compile(config.rows));
  std::string part;
  const Status possible = mapping.check(schema, &part);
  if (!possible.has_value()) return wrong_at(config, part, possible.error().text);
  return mapping;
}

}  // namespace

Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config) {
  return source_kind(config.source.endpoint).make(config);
}

Result<std::string> read_schema(const PipelineConfig& config) {
  const std::string& path = config.schema_file;
  if (path.empty()) return std::string();
  if (path == kOrderSchema) return std::string(orders::order_schema());
  constexpr std::string_view kBuiltin = "builtin:";
  if (path.starts_with(kBuiltin)) {
    return wrong_at(config, "schema", fmt::format("there is no {}, only {}", path, kOrderSchema));
  }
  std::error_code unknown;  // The file cannot be opened then either.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  const bool is_folder = std::filesystem::is_directory(path, unknown);
  if (!file.is_open() || is_folder) {
    return wrong_at(config, "schema",
                    fmt::format("{} cannot be read: {}", path,
                                std::generic_category().message(is_folder ? EISDIR : errno)));
  }
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source,
                                        const std::string& schema_text) {
  const SinkKind& kind = sink_kind(config.sink.endpoint);
  SinkParts parts{.source = source};
  BATON_TRY(parts.schema, compile_schema(config, schema_text));
  if (kind.takes_rows) {
    BATON_ASSERT(parts.schema.has_value());  // check_config() has checked this.
    BATON_TRY(parts.mapping, compile_mapping(config, *parts.schema));
  }
  return kind.make(config, std::move(parts));
}

}  // namespace baton::pipeline
