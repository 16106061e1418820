#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/config.h"

namespace baton::pipeline {

/// That what stands at `path`, or should, is wrong: "config.yaml:12: PATH: why", with the line of
/// what is nearest to it, or the variable that sets it.
Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why);

/// Whether all of it fits together. Pure.
Status check_config(const PipelineConfig& config);

}  // namespace baton::pipeline
