#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/dead_letter.h"
#include "engine/engine.h"
#include "engine/sink.h"
#include "engine/source.h"
#include "pipeline/config.h"

namespace baton::pipeline {

/// A pipeline put together from its config.
class Pipeline {
 public:
  /// Connects to nothing.
  static Result<std::unique_ptr<Pipeline>> open(PipelineConfig config);

  /// Connects to everything, and verifies the tables (`apply`: makes those that are missing, and
  /// what takes the dead letters).
  /// Answers what it did or would do, and what it will do then.
  Result<std::vector<std::string>> check(bool apply);

  /// Ready for run().
  Result<Engine*> engine();
  /// Takes over what may change while it runs; the error says what may not, and nothing is changed.
  Status reload(PipelineConfig config);

  [[nodiscard]] const PipelineConfig& config() const { return config_; }

 private:
  explicit Pipeline(PipelineConfig config) : config_(std::move(config)) {}
  Status open_target();

  PipelineConfig config_;
  std::string schema_text_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<DeadLetterTarget> dead_letters_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace baton::pipeline
