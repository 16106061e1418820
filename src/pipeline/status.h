#pragma once

#include <string>

#include "engine/engine.h"

namespace baton::pipeline {

/// What /pipelines and `baton pipeline status` show, as one JSON document.
std::string status_json(const std::string& name, const Engine& engine);
/// For Prometheus.
std::string metrics_text(const std::string& name, const Engine& engine);

}  // namespace baton::pipeline
