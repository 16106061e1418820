#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "pipeline/ends/pipeline_config.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"

namespace baton::pipeline {

/// The source that a config names. Making it connects to nothing.
Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config);
/// The text of the schema that records must match; empty if the config names none.
Result<std::string> read_schema(const PipelineConfig& config);
/// `source` is the origin that rows record.
Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source,
                                        const std::string& schema_text);

}  // namespace baton::pipeline
