#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "pipeline/ends/pipeline_config.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"

namespace baton::pipeline {

/// What a config names. Nothing is connected by making it.
Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config);
/// The text of the schema that records must keep; empty: the config names none.
Result<std::string> read_schema(const PipelineConfig& config);
/// `source` is what rows say of where they came from.
Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source,
                                        const std::string& schema_text);

}  // namespace baton::pipeline
