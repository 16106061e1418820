#include "pipeline/postgres/kind.h"

#include <utility>

#include "base/assert.h"
#include "pipeline/postgres/postgres_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, SinkParts parts) {
  BATON_ASSERT(parts.schema.has_value() && parts.mapping.has_value());  // It takes rows.
  return std::make_unique<PostgresSink>(
      PostgresSinkOptions{.url = config.sink.endpoint.url,
                          .pipeline = config.name,
                          .source = std::move(parts.source),
                          .lanes = config.engine.lanes,
                          .by_partition = config.engine.order == Order::partition,
                          .exactly_once = config.engine.exactly_once,
                          .statement_timeout = config.sink.timeout,
                          .document_bytes_max = config.record_bytes_max},
      *std::move(parts.schema), *std::move(parts.mapping));
}

}  // namespace

const SinkKind kPostgresSink{.takes_rows = true, .has_transactions = true, .make = make_sink};

}  // namespace baton::pipeline
