#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli_base/output.h"
#include "engine/engine.h"

namespace baton::cli {

/// One line on a terminal that says how far a pipeline is.
class PipelineProgress {
 public:
  explicit PipelineProgress(bool shown) : shown_(shown) {}
  ~PipelineProgress();
  PipelineProgress(const PipelineProgress&) = delete;
  PipelineProgress& operator=(const PipelineProgress&) = delete;

  void update(const pipeline::Counters& counters, const pipeline::EngineStatus& status);

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point last_{};
  std::uint64_t ended_ = 0;
};

/// How it ended, and how many records ended how.
std::string end_text(const Output& out, const std::string& name, pipeline::Ending ending,
                     const pipeline::Engine& engine);

/// The JSON of /pipelines, for people.
std::string status_text(const Json& status);

}  // namespace baton::cli
