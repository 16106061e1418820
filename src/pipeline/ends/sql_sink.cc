#include "pipeline/ends/sql_sink.h"

#include "pipeline/ends/sql_rows.h"

namespace baton::pipeline {

SqlSinkOptions sql_options(const PipelineConfig& config, std::string source) {
  return {.pipeline = config.name,
          .source = std::move(source),
          .lanes = config.engine.lanes,
          .by_partition = config.engine.order == Order::partition,
          .exactly_once = config.engine.exactly_once,
          .document_bytes_max = config.record_bytes_max};
}

std::unique_ptr<Preparer> SqlSink::preparer() {
  return sql_preparer(schema_, mapping_, document_bytes_max_);
}

}  // namespace baton::pipeline
