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

/// What keeps its order on the way to the sink.
enum class Order : std::uint8_t {
  key,        // Records of one key, of all partitions.
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
  Duration revoke_wait = std::chrono::seconds(5);  // For what is in flight when a partition goes.
  // A partition that the sink gives to another, and the source to us: so long they may differ.
  Duration fenced_max = std::chrono::seconds(10);
  bool exactly_once = false;  // exactly_once_effect: the sink must be transactional.
  LaneOptions lane{};
  flow::Breaker::Options breaker{};
  flow::StormGuard::Options storm{};
  std::uint64_t seed = 1;
  std::function<void(bool warning, const std::string&)> log{};
};

/// How a pipeline came to its end.
enum class Ending : std::uint8_t {
  drained,    // Everything taken in was seen to its end, and committed.
  undrained,  // The time to drain was not enough: the rest comes again.
  outage,     // The source or the sink was out for longer than allowed.
  fenced,     // The sink takes another for the owner of what the source gives us.
  source_failed,
};

struct PartitionStatus {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  std::int64_t committed = 0;
  OwnedPartition::Progress progress{};
  std::optional<std::int64_t> end{};  // Of the source: the lag follows.
};

/// Something that a pipeline needs is away.
struct Outage {
  std::string why{};
  Duration time{};  // For how long.
};

struct EngineStatus {
  Gate::Shown gate{};
  std::optional<Outage> source{};  // Nothing: it answers.
  std::vector<PartitionStatus> partitions{};
  std::size_t window_records = 0;
  std::size_t window_bytes = 0;
  double rate = 0;      // Records that end in a second.
  bool moving = false;  // Some ended in the last second or so.

  /// Records come, and the sink takes them.
  [[nodiscard]] bool is_ready() const {
    return !source.has_value() && gate.state == flow::Breaker::State::closed;
  }
};

/// source -> decode -> lanes -> sink, and what was seen to its end back to the source as commits.
/// Lives for one run().
class Engine : public SourceListener {
 public:
  Engine(EngineOptions options, Source& source, Sink& sink, DeadLetterTarget& dead_letters);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() override;

  /// Until `stop`, an outage that is too long, or the end of the source.
  Result<Ending> run(const std::stop_token& stop);
  /// Batches, retries, limits of the breaker and of storms as `options` say, from now on; the rest
  /// of them is passed over. Goes on after a halt: an operator has looked.
  void reload(const EngineOptions& options);

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] EngineStatus status() const;
  /// Why it ends, when nobody asked it to: known while what is in flight is still waited for.
  [[nodiscard]] std::optional<Ending> early_end() const;

  /// Taken in and not seen to their end, of the partitions that are ours, or were when it ended.
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
  /// Nothing: the sink is out, or halted.
  std::optional<SinkMarks> claim(std::uint32_t partition, std::int64_t next);
  /// Waits for records that the source does not have any more. True: nothing is in flight.
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
  std::atomic<bool> undrained_{false};  // A partition ended before its records did.
  bool paused_ = false;
  Gate::Shown told_;  // Of the gate, when it was last logged.
  Instant commit_at_;
  Instant drain_end_;  // Written before stopping_.
  Instant measured_at_ = boot_time();
  std::uint64_t ended_ = 0;  // By then.
  std::atomic<double> rate_{0};
  std::atomic<bool> moving_{false};

  std::mutex claims_;
  mutable std::mutex mutex_;  // Of what follows.
  std::map<std::uint32_t, std::shared_ptr<OwnedPartition>> assignments_;
  std::vector<std::shared_ptr<OwnedPartition>> last_assignments_;  // Ours when it ended.
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
