#pragma once

#include "base/result.h"
#include "pipeline/ends/pipeline_config.h"

namespace baton::pipeline {

/// Whether all of it fits together. Pure.
Status check_config(const PipelineConfig& config);

}  // namespace baton::pipeline
