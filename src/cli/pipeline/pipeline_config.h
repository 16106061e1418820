#pragma once

#include <string>

#include "base/result.h"
#include "pipeline/app/config.h"

namespace baton::cli {

/// The config in a file, with the environment laid over it and its paths resolved.
Result<pipeline::PipelineConfig> read_pipeline_config(const std::string& file);

}  // namespace baton::cli
