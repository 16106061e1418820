#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "pipeline/app/config.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"

namespace baton::pipeline {

/// What a config names. Nothing is connected by making it, but targets of dead letters.
Result<std::unique_ptr<Source>> make_source(const PipelineConfig& config);
/// The text of the schema that records must keep; empty: the config names none.
Result<std::string> read_schema(const PipelineConfig& config);
/// `source` is what rows say of where they came from.
Result<std::unique_ptr<Sink>> make_sink(const PipelineConfig& config, const std::string& source,
                                        const std::string& schema_text);
/// What open_dead_letters() would create, "the queue NAME"; empty: it is there.
Result<std::string> missing_dead_letters(const PipelineConfig& config);
Result<std::unique_ptr<DeadLetterTarget>> open_dead_letters(const PipelineConfig& config);

}  // namespace baton::pipeline
