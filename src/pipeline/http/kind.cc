#include "pipeline/http/kind.h"

#include <utility>

#include "pipeline/http/http_sink.h"

namespace baton::pipeline {
namespace {

Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, SinkParts parts) {
  BATON_TRY(std::unique_ptr<Sink> sink,
            HttpSink::open({.url = config.sink.endpoint.url,
                            .headers = config.sink.headers,
                            .timeout = config.sink.timeout,
                            .pipeline = config.name,
                            .source = std::move(parts.source),
                            .schema = std::move(parts.schema),
                            .document_bytes_max = config.record_bytes_max}));
  return sink;
}

}  // namespace

const SinkKind kHttpSink{.make = make_sink};

}  // namespace baton::pipeline
