#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "core/queue/machine.h"
#include "server/shard/machine.h"

namespace baton {

/// The queues of one shard, and the sinks of their consumers.
class QueueShard final : public ShardMachine {
 public:
  QueueShard(const MachineOptions& options, ShardLog& log);

  static std::string_view name_of(const QueueCommand& command);
  static std::size_t bytes_of(const QueueCommand& command);

  [[nodiscard]] std::span<const Table> tables() const override;
  Status load(Table table, const Row& row) override { return machine_.load(table, row); }
  void loaded() override { machine_.loaded(); }
  [[nodiscard]] std::span<const FactSet* const> facts() const override;
  Status apply(const FactFrame& frame, AppliedRows& rows, Instant now) override;
  Status apply_1(FactOwner owner, Decoder& in, AppliedRows& rows, Instant now) override;
  Status applied(AppliedRows& rows) override;
  Status caught_up(AppliedRows& rows) override;
  void seal(CheckpointJob& job) override;
  [[nodiscard]] std::uint64_t changed_bytes() const override { return machine_.delta_bytes(); }

  Status start(std::uint64_t boot, RoundFacts& facts, Instant now) override;
  void begin_serving(Instant now) override { machine_.begin_serving(now); }
  [[nodiscard]] Demand demand(const Command& command) const override;
  void refuse(Command& command, const Error& error) const override;
  Progress execute(Command& command, Instant now) override;
  Progress resume(Command& command, const std::vector<Row>& rows, bool exhausted,
                  Instant now) override;
  void take_rows(const ReadDone& read, Instant now) override;
  bool tick(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return machine_.next_deadline(); }
  void take_effects(Held& held) override;
  void add_stats(ShardStats& stats) const override;

  [[nodiscard]] const QueueMachine& machine() const { return machine_; }

 private:
  class Told;
  Status apply_fact(const QueueFact& fact, AppliedRows& rows, Instant now);
  Status restore(AppliedRows& rows, Table table, const std::string& key);

  std::size_t round_deliveries_;
  std::function<void(const QueueEffects::Transfer&)> transfer_;
  QueueMachine machine_;
  std::unordered_map<ConsumerNumber, std::shared_ptr<ConsumerSink>> sinks_;
  std::map<std::uint64_t, QueueEffects::RefillRequest> refills_;  // The refills under way.
  std::uint64_t next_refill_ = 1;
  std::uint64_t spilled_messages_ = 0;
  std::uint64_t refills_done_ = 0;
  std::uint64_t rows_missing_ = 0;
};

}  // namespace baton
