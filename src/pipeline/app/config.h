#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secure/settings.h"
#include "pipeline/ends/pipeline_config.h"

namespace baton::pipeline {

/// Reads YAML, applies `environment` over it (BATON_PIPELINE__SINK__URL is sink.url; other names
/// are ignored), and checks that all settings fit together. Pure. Errors name the file and line, or
/// the variable.
Result<PipelineConfig> parse_config(std::string_view text, std::string_view name,
                                    const std::map<std::string, std::string>& environment);

/// Sets `id`, replacing the config's: letters, digits and . _ -. Fails for a source without
/// members.
Status set_id(PipelineConfig& config, std::string_view id);

/// Makes relative paths of a config relative to its file's folder instead of the working directory.
void resolve_paths(PipelineConfig& config, const std::string& folder);

/// Reads the files for TLS and logins that the config names. Errors name the setting.
Status load_security(PipelineConfig& config, const secure::Environment& environment);

/// Whether a running pipeline can take over `fresh`; the error names a setting that it cannot
/// change.
Status check_reload(const PipelineConfig& running, const PipelineConfig& fresh);

}  // namespace baton::pipeline
