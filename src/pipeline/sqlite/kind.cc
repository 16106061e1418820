#include "pipeline/sqlite/kind.h"

#include <utility>

#include "base/assert.h"
#include "pipeline/sqlite/sqlite_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, SinkParts parts) {
  BATON_ASSERT(parts.schema.has_value() && parts.mapping.has_value());  // It takes rows.
  return std::make_unique<SqliteSink>(
      SqliteSinkOptions{.path = config.sink.endpoint.name,
                        .pipeline = config.name,
                        .source = std::move(parts.source),
                        .lanes = config.engine.lanes,
                        .by_partition = config.engine.order == Order::partition,
                        .exactly_once = config.engine.exactly_once,
                        .document_bytes_max = config.record_bytes_max},
      *std::move(parts.schema), *std::move(parts.mapping));
}

}  // namespace

const SinkKind kSqliteSink{.takes_rows = true, .has_transactions = true, .make = make_sink};

}  // namespace baton::pipeline
