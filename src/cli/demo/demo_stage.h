#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <baton/client.h>
#include <nlohmann/json.hpp>

#include "base/result.h"
#include "cli/base/output.h"
#include "cli/demo/child_process.h"

/// The stage of `baton demo`: a broker of its own, and a narrator.
namespace baton::cli {

/// What takes less did not wait for a deadline.
inline constexpr double kAtOnceMs = 1'000;

/// A temporary folder, removed at the end; a signal that ends us also ends the broker, by its pid.
class DemoFolder {
 public:
  DemoFolder() = default;
  DemoFolder(const DemoFolder&) = delete;
  DemoFolder& operator=(const DemoFolder&) = delete;
  ~DemoFolder();

  /// Call before any other thread is started.
  Status make();
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The process that a signal must end before the folder can be removed.
  void set_broker(pid_t pid) { broker_ = pid; }

 private:
  void watch_signals();

  std::string path_;
  std::atomic<pid_t> broker_ = -1;
  std::atomic<bool> over_ = false;
  std::thread watcher_;
};

/// A broker in a process of its own, on a free port that it keeps over restarts.
class DemoBroker {
 public:
  explicit DemoBroker(DemoFolder& folder) : folder_(folder) {}

  /// Starts it and waits until it is ready.
  Status start();
  void kill();
  /// Returns its exit code.
  std::optional<int> stop();

  [[nodiscard]] std::string address() const;
  [[nodiscard]] client::ConnectionOptions connection() const;
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] std::string log_file() const { return folder_.path() + "/broker.log"; }

 private:
  Status wait_until_ready();

  DemoFolder& folder_;
  ChildProcess process_;
  int port_ = 0;
};

/// Tells people what happens; records it for programs; counts the checks.
class Narrator {
 public:
  explicit Narrator(Output out) : out_(out) {}

  void act(std::string_view title);
  void say(std::string_view text);
  /// Checks something that must hold. Returns `holds`.
  bool check(bool holds, std::string_view claim);
  /// A measurement, for programs; people read it in a sentence.
  void number(std::string_view name, double value);
  /// Reports the error that stopped an act; counts as a failed check.
  void failed(std::string_view what, const Error& error);
  /// Prints the summary.
  [[nodiscard]] ExitCode finish(std::chrono::milliseconds took) const;

 private:
  Output out_;
  Json acts_ = Json::array();
  std::uint64_t passed_ = 0;
  std::vector<std::string> broken_;
};

/// What every act gets.
struct Stage {
  DemoFolder& folder;
  DemoBroker& broker;
  const client::Broker& client;
  Narrator& narrator;
};

// The acts, in the order in which they are played.
Status act_first_messages(Stage& stage);
Status act_consumer_dies(Stage& stage);
Status act_late_ack(Stage& stage);
Status act_dead_letters(Stage& stage);
Status act_fairness(Stage& stage);
Status act_broker_dies(Stage& stage);
Status act_throughput(Stage& stage);
Status act_stream_seats(Stage& stage);
Status act_partition_leases(Stage& stage);
Status act_pipeline(Stage& stage);

}  // namespace baton::cli
