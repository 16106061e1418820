#pragma once

#include <string>

#include "base/result.h"
#include "pipeline/config.h"

namespace baton::cli {

/// The config in a file, with the environment laid over it.
Result<pipeline::PipelineConfig> read_pipeline_config(const std::string& file);

/// Where the paths in it begin: wherever the command is given, they are the file's.
std::string folder_of(const std::string& file);

}  // namespace baton::cli
