#pragma once

#include <chrono>
#include <stop_token>
#include <thread>
#include <utility>

#include "pipeline/engine/engine.h"
#include "pipeline/engine/test_sink.h"

namespace baton::pipeline {

/// An engine that runs on a thread of its own, with a sink that may be shared.
class EngineRun {
 public:
  /// Short times, for tests.
  static EngineOptions quick() {
    EngineOptions options;
    options.commit_interval = std::chrono::milliseconds(50);
    options.drain = std::chrono::seconds(10);
    options.lane.linger = std::chrono::milliseconds(1);
    options.lane.retries = 1;
    options.lane.backoff = {.first = std::chrono::milliseconds(1),
                            .most = std::chrono::milliseconds(5)};
    options.lane.pipeline = "test";
    options.breaker.probe = {.first = std::chrono::milliseconds(20),
                             .most = std::chrono::milliseconds(100)};
    options.breaker.slow_start = std::chrono::milliseconds(1);
    return options;
  }

  EngineRun(Source& source, Sink& sink, DeadLetterTarget& letters, EngineOptions options = quick())
      : engine_(std::move(options), source, sink, letters),
        thread_([this](const std::stop_token& stop) { ending_ = engine_.run(stop); }) {}
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;
  ~EngineRun() { (void)stop(); }

  Result<Ending> stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    return ending_;
  }
  Engine& engine() { return engine_; }
  [[nodiscard]] const Counters& counters() const { return engine_.counters(); }
  [[nodiscard]] bool is_out() const { return !engine_.status().gate.why.empty(); }

 private:
  Engine engine_;
  Result<Ending> ending_{Ending::undrained};
  std::jthread thread_;
};

}  // namespace baton::pipeline
