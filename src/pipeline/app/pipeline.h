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
  /// How the wait for everything that is needed ended.
  enum class Start : std::uint8_t {
    ready,
    outage,    // It took longer than max_outage.
    given_up,  // `give_up` came true.
  };
  /// What has to answer before the first record is read, and does not.
  struct Waiting {
    std::string what{};  // "source", "sink" or "dead letters".
    Outage outage{};
  };

  /// Connects to nothing.
  static Result<std::unique_ptr<Pipeline>> open(PipelineConfig config);

  /// Connects to everything, and verifies the tables (`apply`: makes those that are missing, and
  /// what takes the dead letters).
  /// Answers what it did or would do, and what it will do then. Errors name the setting.
  Result<CheckReport> check(bool apply);

  /// check(true), and again while something is away that may come back; logs what it did, and what
  /// it waits for. `give_up` is asked about 50 times in a second, between the questions.
  Result<Start> start(const std::function<bool()>& give_up);
  /// Ready for run(). After start().
  [[nodiscard]] Engine& engine() { return *running_.load(); }
  /// From any thread: nothing before start() is over.
  [[nodiscard]] const Engine* running() const { return running_.load(); }
  /// From any thread: what start() waits for.
  [[nodiscard]] std::optional<Waiting> waiting() const;

  /// Takes over what may change while it runs; the error says what may not, and nothing is changed.
  Status reload(PipelineConfig config);

  [[nodiscard]] const PipelineConfig& config() const { return config_; }

 private:
  explicit Pipeline(PipelineConfig config) : config_(std::move(config)) {}
  Status open_target();
  /// The same error, with the place of the setting that it is about.
  [[nodiscard]] Error of_part(std::string_view what, std::string_view path, const Error& error);
  Status check_source(CheckReport& report);
  Status check_letters(bool apply, CheckReport& report);
  Status make_engine();
  void set_waiting(const Error& error);
  void end_waiting();
  [[nodiscard]] bool waits_too_long() const;
  /// Why the wait ended before `again`; nothing when it did not.
  std::optional<Start> wait_until(Instant again, const std::function<bool()>& give_up) const;
  void log(bool warning, const std::string& text) const;

  PipelineConfig config_;
  std::string schema_text_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<DeadLetterTarget> dead_letters_;
  std::unique_ptr<Engine> engine_;
  std::atomic<Engine*> running_{nullptr};
  std::string part_;  // What the last error of check() is about.

  mutable std::mutex mutex_;  // Of what follows.
  std::optional<Waiting> waiting_;
  Instant waiting_since_;
};

}  // namespace baton::pipeline
