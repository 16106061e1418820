#pragma once

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"
#include "e2e/process.h"

namespace baton::pipeline {

/// A folder with the config of an order pipeline, as `baton pipeline init` prints it.
class PipelineFolder {
 public:
  using Settings = std::map<std::string, std::string>;

  /// From the stream "orders" of `broker` into SQLite; `settings` override the config, by path:
  /// {"batch.records", "100"}.
  PipelineFolder(const e2e::BrokerProcess& broker, Settings settings = {});

  [[nodiscard]] std::string config() const { return folder_ / "config.yaml"; }
  [[nodiscard]] std::string database() const { return folder_ / "orders.db"; }
  [[nodiscard]] const e2e::TempFolder& folder() const { return folder_; }
  Settings& settings() { return settings_; }
  /// Then only the marks of exactly_once_effect prevent duplicate rows.
  void remove_key() const;
  /// The settings as environment variables.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// `baton pipeline check`.
  [[nodiscard]] e2e::CommandResult check(std::vector<std::string> more = {}) const;

 private:
  e2e::TempFolder folder_;
  Settings settings_;
};

/// `baton pipeline run` on such a folder; killed with its owner.
class PipelineProcess {
 public:
  explicit PipelineProcess(const PipelineFolder& folder) : folder_(folder) {}

  /// Starts it and waits until everything is available, and it reads. False if it ended instead.
  bool start();
  /// Starts it without waiting.
  void launch();
  void kill() { child_->kill(); }
  void signal(int number) const { child_->signal(number); }
  void pause() const { child_->pause(); }
  void resume() const { child_->signal(SIGCONT); }
  /// Sends SIGTERM; returns its exit code, or nullopt if it runs for longer.
  std::optional<int> terminate(e2e::milliseconds within = e2e::seconds{40});
  std::optional<int> wait(e2e::milliseconds within) { return child_->wait(within); }

  /// The output of `baton pipeline status --json`; empty if there is no answer.
  [[nodiscard]] nlohmann::json status() const;
  [[nodiscard]] std::uint64_t counter(const std::string& name) const;
  /// Applied, duplicates and dead letters of this life.
  [[nodiscard]] std::uint64_t ended() const;
  [[nodiscard]] std::string breaker() const;
  /// Status and body of an HTTP response; 0 if there is no answer.
  [[nodiscard]] std::pair<int, std::string> get(const std::string& path) const;
  /// Of all its lives; so is its final output.
  [[nodiscard]] std::string log() const { return e2e::read_file(log_file()); }
  [[nodiscard]] std::string out() const { return e2e::read_file(log_file() + ".out"); }
  /// Its resident memory, in KiB.
  [[nodiscard]] std::uint64_t resident() const;

 private:
  [[nodiscard]] std::string log_file() const;
  [[nodiscard]] std::string http() const;

  const PipelineFolder& folder_;
  static inline int g_count = 0;
  int number_ = ++g_count;
  std::size_t log_begin_ = 0;  // Of this life.
  std::unique_ptr<e2e::ChildProcess> child_;
};

}  // namespace baton::pipeline
