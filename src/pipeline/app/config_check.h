#pragma once

#include "base/result.h"
#include "pipeline/ends/pipeline_config.h"

namespace baton::pipeline {

/// Checks that all settings fit together. Pure.
Status check_config(const PipelineConfig& config);

}  // namespace baton::pipeline
