#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secure/settings.h"
#include "pipeline/ends/pipeline_config.h"

namespace baton::pipeline {

/// Reads YAML, lays `environment` over it (BATON_PIPELINE__SINK__URL is sink.url; other names are
/// passed over), and checks that all of it fits together. Pure. Errors name the file and line, or
/// the variable.
Result<PipelineConfig> parse_config(std::string_view text, std::string_view name,
                                    const std::map<std::string, std::string>& environment);

/// Sets `id`, over the config's: letters, digits and . _ -. Fails for a source without members.
Status set_id(PipelineConfig& config, std::string_view id);

/// Paths in a config begin at its file's folder, wherever a command is given.
void resolve_paths(PipelineConfig& config, const std::string& folder);

/// Reads what TLS and logins need from the files that the config names. Errors name the setting.
Status load_security(PipelineConfig& config, const secure::Environment& environment);

/// What a running pipeline can take over; the error names what it cannot.
Status check_reload(const PipelineConfig& running, const PipelineConfig& fresh);

}  // namespace baton::pipeline
