#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/gate.h"
#include "pipeline/engine/lane.h"
#include "pipeline/engine/owned_partition.h"
#include "pipeline/engine/sink.h"
#include "pipeline/engine/source.h"
#include "pipeline/engine/window.h"
#include "pipeline/flow/breaker.h"
#include "pipeline/flow/storm_guard.h"

namespace baton::pipeline {

/// Which records keep their order on the way to the sink.
enum class Order : std::uint8_t {
  key,        // Records of one key, over all partitions.
  partition,  // Records of one partition.
  none,
};

struct EngineOptions {
  std::uint32_t workers = 4;  // Decoding threads.
  std::uint32_t lanes = 4;    // Writing threads.
  Order order = Order::key;
  std::size_t window_records = 20'000;
  std::size_t window_bytes = std::size_t{64} << 20U;
  Duration commit_interval = std::chrono::milliseconds(200);
  Duration drain = std::chrono::seconds(30);
  // How long the revocation of a partition waits for its records in flight.
  Duration revoke_wait = std::chrono::seconds(5);
  // How long source and sink may disagree on a partition's owner before the pipeline ends as
  // fenced.
  Duration fenced_max = std::chrono::seconds(10);
  bool exactly_once = false;  // exactly_once_effect: the sink must be transactional.
  LaneOptions lane{};
  flow::Breaker::Options breaker{};
  flow::StormGuard::Options storm{};
  std::uint64_t seed = 1;
  std::function<void(bool warning, const std::string&)> log{};
};

/// How a run ended.
enum class Ending : std::uint8_t {
  drained,    // Every record taken in is finished and committed.
  undrained,  // The time to drain was too short: the rest is read again.
  outage,     // The source or the sink was unavailable for longer than allowed.
  fenced,     // The sink has another owner for a partition that the source assigns to this process.
  source_failed,
};

struct PartitionStatus {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  std::int64_t committed = 0;
  OwnedPartition::Progress progress{};
  std::optional<std::int64_t> end{};  // The source's end offset, from which the lag follows.
};

/// A part that the pipeline needs is unavailable.
struct Outage {
  std::string why{};
  Duration time{};  // Duration so far.
};

struct EngineStatus {
  Gate::Shown gate{};
  std::optional<Outage> source{};  // nullopt if the source answers.
  std::vector<PartitionStatus> partitions{};
  std::size_t window_records = 0;
  std::size_t window_bytes = 0;
  double rate = 0;      // Finished records per second.
  bool moving = false;  // Whether some finished in the last second or so.

  /// Whether records arrive and the sink takes them.
  [[nodiscard]] bool is_ready() const {
    return !source.has_value() && gate.state == flow::Breaker::State::closed;
  }
};

/// source -> decode -> lanes -> sink, and finished records back to the source as commits. Lives for
/// one run().
class Engine : public SourceListener {
 public:
  Engine(EngineOptions options, Source& source, Sink& sink, DeadLetterTarget& dead_letters);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override;

  /// Runs until `stop`, an outage that lasts too long, or the end of the source.
  Result<Ending> run(const std::stop_token& stop);
  /// Applies the batches, retries, and limits of breaker and storm guard of `options` from now on;
  /// ignores the other options. Resumes after a halt, because a reload means that an operator has
  /// looked.
  void reload(const EngineOptions& options);

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] EngineStatus status() const;
  /// Why the run ends without being asked to: known while records in flight are still waited for.
  [[nodiscard]] std::optional<Ending> early_end() const;

  /// Unfinished records of the partitions that this process has, or had when the run ended.
  [[nodiscard]] std::uint64_t left_open() const;

  std::optional<std::int64_t> assigned(std::uint32_t partition, std::uint64_t epoch,
                                       std::int64_t next) override;
  bool deliver(std::uint32_t partition, std::vector<Record> records) override;
  bool offer(std::uint32_t partition, std::vector<Record>& records) override;
  [[nodiscard]] bool has_room() const override { return window_.has_room(); }
  void revoking(std::uint32_t partition) override;
  std::optional<std::int64_t> revoked(std::uint32_t partition, bool lost) override;
  void failed(Error error) override;

 private:
  void start_threads();
  void stop_threads();
  void decode(ItemQueue& queue);
  [[nodiscard]] std::uint32_t lane_of(const Record& record) const;
  void keep_house();
  void look_for_end();
  [[nodiscard]] bool is_fenced_for_good();
  void commit();
  void measure();
  void probe();
  void follow_gate();
  void follow_source();
  void tell_of_gate();
  Status start_source(const std::stop_token& stop);
  void set_source_trouble(std::optional<std::string> why);
  [[nodiscard]] std::optional<Outage> source_outage() const;
  void log(bool warning, const std::string& text) const;
  /// nullopt if the sink is unavailable or halted.
  std::optional<SinkMarks> claim(std::uint32_t partition, std::int64_t next);
  /// Waits for records that the source no longer has. True if nothing is in flight.
  bool wait_for_last_copies(OwnedPartition& assignment);
  [[nodiscard]] std::shared_ptr<OwnedPartition> find(std::uint32_t partition) const;
  [[nodiscard]] std::shared_ptr<const LaneOptions> lane_options() const;
  [[nodiscard]] Duration outage_max() const;
  void take_in(Record& record, const std::shared_ptr<OwnedPartition>& assignment,
               std::vector<Items>& parts);
  void hand_on(std::vector<Items>& parts);
  [[nodiscard]] bool is_unwanted(const OwnedPartition& assignment) const;

  EngineOptions options_;
  Source& source_;
  Sink& sink_;
  Counters counters_;
  Gate gate_;
  Window window_;
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> undrained_{false};  // A partition was revoked before its records finished.
  bool paused_ = false;
  Gate::Shown told_;  // The gate's state when it was last logged.
  Instant commit_at_;
  Instant drain_end_;  // Written before stopping_.
  Instant measured_at_ = boot_time();
  std::uint64_t ended_ = 0;  // Finished records at that time.
  std::atomic<double> rate_{0};
  std::atomic<bool> moving_{false};

  std::mutex claims_;
  mutable std::mutex mutex_;  // Guards the members below.
  std::map<std::uint32_t, std::shared_ptr<OwnedPartition>> assignments_;
  std::vector<std::shared_ptr<OwnedPartition>> last_assignments_;  // Those at the end of the run.
  std::optional<Error> failure_;
  std::optional<Instant> fenced_since_;
  std::string source_trouble_;
  std::optional<Instant> source_out_since_;
  Duration outage_max_{};
  std::optional<Ending> early_end_;
  std::shared_ptr<const LaneOptions> lane_options_;

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<std::unique_ptr<ItemQueue>> decoding_;
  std::vector<std::jthread> decoders_;
  std::vector<std::jthread> writers_;
};

}  // namespace baton::pipeline
