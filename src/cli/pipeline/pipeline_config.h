#pragma once

#include <string>

#include "base/result.h"
#include "pipeline/app/config.h"

namespace baton::cli {

/// The config of a file, overridden by the environment and with its paths resolved.
Result<pipeline::PipelineConfig> read_pipeline_config(const std::string& file);

}  // namespace baton::cli
