#include "pipeline/sqlite/kind.h"

#include <utility>

#include "base/assert.h"
#include "pipeline/sqlite/sqlite_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, SinkParts parts) {
  BATON_ASSERT(parts.schema.has_value() && parts.mapping.has_value());  // It takes rows.
  return std::make_unique<SqliteSink>(config.sink.endpoint.name,
                                      sql_options(config, std::move(parts.source)),
                                      *std::move(parts.schema), *std::move(parts.mapping));
}

}  // namespace

const SinkKind kSqliteSink{.takes_rows = true, .has_transactions = true, .make = make_sink};

}  // namespace baton::pipeline
