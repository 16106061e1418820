#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/app/config.h"

namespace baton::pipeline {

/// That what stands at `path`, or should, is wrong: "config.yaml:12: PATH: why", with the line of
/// what is nearest to it, or the variable that sets it.
Error wrong_at(const PipelineConfig& config, std::string_view path, std::string_view why);

/// The same error, of what stands at `path`: with the place in front.
Error with_place(const PipelineConfig& config, std::string_view path, const Error& error);

/// Whether all of it fits together. Pure.
Status check_config(const PipelineConfig& config);

}  // namespace baton::pipeline
