#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <utility>

#include "pipeline/parts.h"

namespace baton::pipeline {

Result<std::unique_ptr<Pipeline>> Pipeline::open(PipelineConfig config) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(config)));
  PipelineConfig& kept = pipeline->config_;
  BATON_TRY(pipeline->source_, make_source(kept));
  kept.engine.lane.source = pipeline->source_->name();
  BATON_TRY(pipeline->schema_text_, read_schema(kept));
  BATON_TRY(pipeline->sink_, make_sink(kept, kept.engine.lane.source, pipeline->schema_text_));
  return pipeline;
}

Status Pipeline::open_target() {
  if (dead_letters_ != nullptr) return {};
  BATON_TRY(dead_letters_, open_dead_letters(config_));
  return {};
}

Result<std::vector<std::string>> Pipeline::check(bool apply) {
  BATON_TRY(std::vector<std::string> findings, source_->check());
  if (config_.engine.exactly_once) {
    BATON_TRY(std::string origin, source_->origin());
    sink_->set_origin(std::move(origin));
  }
  BATON_TRY(const std::vector<std::string> tables, sink_->check(apply));
  BATON_TRY(const std::string missing, missing_dead_letters(config_));
  // Opening creates it.
  if (apply || missing.empty()) BATON_TRY_STATUS(open_target());
  findings.insert(findings.end(), tables.begin(), tables.end());
  if (!missing.empty()) {
    findings.push_back(fmt::format("{} {}", apply ? "created" : "would create", missing));
  }
  findings.push_back(
      fmt::format("writes to {}, {}", sink_->name(),
                  config_.engine.exactly_once ? "exactly_once_effect" : "at_least_once"));
  const Endpoint& letters = config_.dead_letters.endpoint;
  findings.push_back(
      fmt::format("what cannot be written goes to {}:{}", letters.kind, letters.name));
  return findings;
}

Result<Engine*> Pipeline::engine() {
  BATON_TRY_STATUS(open_target());
  if (engine_ == nullptr) {
    BATON_TRY(std::string origin, source_->origin());
    sink_->set_origin(std::move(origin));
    engine_ = std::make_unique<Engine>(config_.engine, *source_, *sink_, *dead_letters_);
  }
  return engine_.get();
}

Status Pipeline::reload(PipelineConfig config) {
  BATON_TRY_STATUS(check_reload(config_, config));
  BATON_TRY(const std::string schema_text, read_schema(config));
  if (schema_text != schema_text_) {
    return Error{Errc::invalid_argument,
                 fmt::format("schema: {} has changed, which counts from the next start on: restart "
                             "the pipeline",
                             config.schema_file)};
  }
  config_.given = std::move(config.given);
  engine_->reload(config.engine);
  return {};
}

}  // namespace baton::pipeline
