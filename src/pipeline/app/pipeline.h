#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/app/check_report.h"
#include "pipeline/app/config.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/engine.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"

namespace baton::pipeline {

/// A pipeline put together from its config.
class Pipeline {
 public:
  /// How the wait for everything that the pipeline needs ended.
  enum class Start : std::uint8_t {
    ready,
    outage,    // The wait took longer than max_outage.
    given_up,  // `give_up` returned true.
  };
  /// A part that must answer before the first record is read, and does not answer.
  struct Waiting {
    std::string what{};  // "source", "sink" or "dead letters".
    Outage outage{};
  };

  /// Makes the parts without connecting to anything.
  static Result<std::unique_ptr<Pipeline>> open(PipelineConfig config);

  /// Connects to everything, and verifies the tables. With `apply`, creates missing tables and the
  /// target of dead letters. Returns what it did or would do, and what a run will do. Errors name
  /// the setting.
  Result<CheckReport> check(bool apply);

  /// Runs check(true), and repeats it while a part is unavailable that may come back. Logs what it
  /// did, and what it waits for. `give_up` is asked about 50 times per second while it waits.
  Result<Start> start(const std::function<bool()>& give_up);
  /// The engine, ready for run(). Only after start().
  [[nodiscard]] Engine& engine() { return *running_.load(); }
  /// From any thread: null before start() has finished.
  [[nodiscard]] const Engine* running() const { return running_.load(); }
  /// From any thread: what start() waits for.
  [[nodiscard]] std::optional<Waiting> waiting() const;

  /// Applies settings that may change during a run. If any other setting changed, the error names
  /// it and nothing is changed.
  Status reload(PipelineConfig config);

  [[nodiscard]] const PipelineConfig& config() const { return config_; }

 private:
  explicit Pipeline(PipelineConfig config) : config_(std::move(config)) {}
  Status open_target();
  /// The same error, with the place of the setting that caused it.
  [[nodiscard]] Error of_part(std::string_view what, std::string_view path, const Error& error);
  Status check_source(CheckReport& report);
  Status check_letters(bool apply, CheckReport& report);
  Status make_engine();
  void set_waiting(const Error& error);
  void end_waiting();
  [[nodiscard]] bool waits_too_long() const;
  /// Why the wait ended before `again`; nullopt if it lasted until `again`.
  std::optional<Start> wait_until(Instant again, const std::function<bool()>& give_up) const;
  void log(bool warning, const std::string& text) const;

  PipelineConfig config_;
  std::string schema_text_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<DeadLetterTarget> dead_letters_;
  std::unique_ptr<Engine> engine_;
  std::atomic<Engine*> running_{nullptr};
  std::string part_;  // The part that the last error of check() is about.

  mutable std::mutex mutex_;  // Guards the members below.
  std::optional<Waiting> waiting_;
  Instant waiting_since_;
};

}  // namespace baton::pipeline
