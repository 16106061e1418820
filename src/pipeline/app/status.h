#pragma once

#include <string>

#include "pipeline/app/pipeline.h"

namespace baton::pipeline {

/// Everything there is to see of a pipeline that runs, or waits to begin, as JSON.
std::string status_json(const std::string& name, const Pipeline& pipeline);
/// The same for Prometheus.
std::string metrics_text(const std::string& name, const Pipeline& pipeline);
/// Why it is not ready: something that it needs is away, or it is halted. Empty: it is.
std::string why_not_ready(const Pipeline& pipeline);

}  // namespace baton::pipeline
