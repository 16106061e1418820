#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "server/shard/shard_log.h"

namespace baton {

/// The rounds that several nodes share: one order, and one epoch that only grows.
struct SharedRounds {
  struct Entry {
    Position position;
    std::uint64_t epoch = 0;
    Instant now;
    std::string facts;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Stores the entry if it is the next one and no node appended under a greater epoch.
  bool store(const Entry& entry);
  [[nodiscard]] Position next() const { return Position{entries.size() + 1}; }

  std::vector<Entry> entries;
  std::vector<Entry> on_their_way;  // Requests without a waiter; they may still arrive.
};

/// How often things go wrong, in percent.
struct SharedLogFaults {
  std::uint64_t request_lost = 0;
  std::uint64_t answer_lost = 0;
  std::uint64_t read_short = 0;
};

/// One node's access to a log in memory that several nodes share. Answers and requests get lost;
/// lost requests may arrive later; reads end early.
class SharedLog final : public LogWithFolders {
 public:
  SharedLog(std::shared_ptr<SharedRounds> rounds, PartitionFolders partitions, Random random,
            SharedLogFaults faults)
      : LogWithFolders(std::move(partitions)),
        rounds_(std::move(rounds)),
        random_(random),
        faults_(faults),
        next_(rounds_->next()) {}

  [[nodiscard]] std::uint64_t round_bytes_max() const override { return std::uint64_t{1} << 24U; }
  [[nodiscard]] Position first() const override { return Position{1}; }
  /// The position after what this node appended or read.
  [[nodiscard]] Position next() const override { return next_; }
  Status append(const NewRound& round) override;
  Result<Position> sync() override;
  Result<Position> settle() override;
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override;
  Status trim(Position /*before*/) override { return {}; }
  [[nodiscard]] std::uint64_t bytes_since(Position from) const override;
  [[nodiscard]] Journal::Room room() const override {
    return {round_bytes_max(), round_bytes_max()};
  }
  Status prepare() override { return {}; }
  [[nodiscard]] bool rounds_carry_records() const override { return true; }

 private:
  Result<Position> send();
  void deliver_late();

  std::shared_ptr<SharedRounds> rounds_;
  mutable Random random_;
  SharedLogFaults faults_;
  std::deque<SharedRounds::Entry> taken_;  // Rounds not known to be durable.
  bool fenced_ = false;
  mutable Position next_;
};

}  // namespace baton
