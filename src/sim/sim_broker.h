#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "server/shard/broker.h"
#include "sim/fake_disk.h"
#include "sim/ledger.h"
#include "sim/plan.h"
#include "sim/sim_shard.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace baton {

/// The broker process of a simulation: its shards, its clock, its crashes and restarts. Takes the
/// place of LocalBroker; outlives the simulated processes.
class SimBroker final : private SimShard::Host {
 public:
  using Done = std::function<void(QueueCommand&)>;
  using Lost = std::function<void()>;

  SimBroker(const Plan& plan, Timeline& timeline, Trace& trace, Ledger& ledger);
  SimBroker(const SimBroker&) = delete;
  SimBroker& operator=(const SimBroker&) = delete;
  ~SimBroker() override;

  /// Starts the process, and the faults.
  void begin();
  /// No fault from now on; a process that is down is started.
  void heal();

  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] Instant now() const { return broker_now(); }
  [[nodiscard]] std::uint64_t crashes() const { return crashes_; }
  [[nodiscard]] std::uint64_t spilled() const;
  /// Passes a command to its shard. Either `done` or `lost` follows; returns false when the broker
  /// is down, and then neither follows.
  bool submit(QueueCommand command, Done done, Lost lost);
  /// Whether an answer or a delivery that is sent now still reaches its client: a process may die
  /// between two of them.
  bool take_answer();
  ConsumerNumber next_consumer_number() { return ConsumerNumber{next_consumer_++}; }
  /// `listener` is called after every crash.
  void on_crash(std::function<void()> listener) { listeners_.push_back(std::move(listener)); }
  /// The process dies, and restarts after a while.
  void crash(std::string_view why) override;

  // For the end of a run.
  [[nodiscard]] std::size_t messages() const;
  [[nodiscard]] std::size_t calls_under_way() const { return calls_; }
  [[nodiscard]] std::string summary() const;
  [[nodiscard]] bool is_quiet() const;
  void request_checkpoint();
  [[nodiscard]] std::string leftover_rows() const;
  /// Stops and starts the process when all is quiet; it must have the same state afterwards.
  void restart_quietly();

 private:
  class SimCall;

  [[nodiscard]] Instant broker_now() const override;
  bool crash_point(std::string_view where, std::uint64_t often) override;
  std::optional<std::uint64_t> draw_last_answers(std::size_t answers) override;
  void transfer(std::uint64_t from_shard, const QueueEffects::Transfer& transfer) override;

  [[nodiscard]] Instant wall() const;
  [[nodiscard]] bool faults() const;
  void start();
  bool start_shards();
  void arm_start_faults();
  void sabotage();
  void post(std::uint64_t shard, QueueCommand command, Done done);
  void post_late(std::uint64_t shard, QueueCommand command, Done done);

  const Plan& plan_;
  Timeline& timeline_;
  Trace& trace_;
  Ledger& ledger_;
  Random random_;
  FakeDisk disk_;
  std::vector<std::unique_ptr<SimShard>> shards_;
  std::vector<std::function<void()>> listeners_;

  bool up_ = false;
  bool healed_ = false;
  bool crashing_ = false;
  bool ending_ = false;
  std::optional<std::uint64_t> answers_left_;  // Of a process that is about to die.
  Instant started_at_;                         // Broker time at the start, and the timeline's.
  Instant started_now_;
  Duration wall_skew_{0};
  std::uint64_t crashes_ = 0;
  std::uint64_t next_consumer_ = 1;
  std::size_t calls_ = 0;
};

}  // namespace baton
