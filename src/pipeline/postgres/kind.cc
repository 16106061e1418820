#include "pipeline/postgres/kind.h"

#include <utility>

#include "base/assert.h"
#include "pipeline/postgres/postgres_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, SinkParts parts) {
  BATON_ASSERT(parts.schema.has_value() && parts.mapping.has_value());  // It takes rows.
  PostgresSinkOptions options{sql_options(config, std::move(parts.source))};
  options.url = config.sink.endpoint.url;
  options.statement_timeout = config.sink.timeout;
  return std::make_unique<PostgresSink>(std::move(options), *std::move(parts.schema),
                                        *std::move(parts.mapping));
}

}  // namespace

const SinkKind kPostgresSink{.takes_rows = true, .has_transactions = true, .make = make_sink};

}  // namespace baton::pipeline
