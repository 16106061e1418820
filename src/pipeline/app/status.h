#pragma once

#include <string>

#include "pipeline/app/pipeline.h"

namespace baton::pipeline {

/// The whole state of a pipeline that runs, or waits to start, as JSON.
std::string status_json(const std::string& name, const Pipeline& pipeline);
/// The same for Prometheus.
std::string metrics_text(const std::string& name, const Pipeline& pipeline);
/// Why the pipeline is not ready: a part is unavailable, or the pipeline is halted. Empty if it is
/// ready.
std::string why_not_ready(const Pipeline& pipeline);

}  // namespace baton::pipeline
