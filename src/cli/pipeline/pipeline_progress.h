#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/base/output.h"
#include "pipeline/engine/engine.h"

namespace baton::cli {

/// Shows the progress of a pipeline: on one line of a terminal that is redrawn, or now and then in
/// the log, when something has changed.
class PipelineProgress {
 public:
  struct Options {
    bool on_terminal = false;
    std::function<void(const std::string&)> log{};  // Without a terminal; empty: no output.
  };
  explicit PipelineProgress(Options options) : options_(std::move(options)) {}
  ~PipelineProgress();
  PipelineProgress(const PipelineProgress&) = delete;
  PipelineProgress& operator=(const PipelineProgress&) = delete;

  void update(const pipeline::Counters& counters, const pipeline::EngineStatus& status);

 private:
  using Clock = std::chrono::steady_clock;
  const Options options_;
  bool drawn_ = false;
  Clock::time_point last_ = Clock::now();
  std::uint64_t ended_ = 0;
};

/// "sink ok; 400/s, lag 20; 12 345 applied, 3 duplicates, 1 dead letter".
std::string progress_text(const pipeline::Counters& counters, const pipeline::EngineStatus& status,
                          double rate);

/// How it ended, and how many records ended how. `engine`: null if it never began to read.
std::string end_text(const Output& out, const std::string& name, pipeline::Ending ending,
                     const pipeline::Engine* engine);

/// The JSON of /pipelines, for people.
std::string status_text(const Json& status);

}  // namespace baton::cli
