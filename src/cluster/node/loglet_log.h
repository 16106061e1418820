#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "cluster/loglet/loglet.h"
#include "cluster/loglet/pump.h"
#include "cluster/loglet/reading.h"
#include "cluster/node/log_mark.h"
#include "server/shard/shard_log.h"
#include "storage/disk/disk.h"

namespace baton::cluster {

struct LogletLogOptions {
  loglet::Pump::Options pump;
  std::uint32_t node = 1;
  std::uint32_t generation = 1;
  std::string mark_file;  // Where this node keeps the place that its checkpoint has reached.
  /// When nothing is confirmed for this long, the outcome counts as unknown: additions are refused.
  Duration confirm_patience = std::chrono::seconds{1};
  /// How long reading may go on without bringing anything.
  Duration read_patience = std::chrono::seconds{30};
  /// Additions wait beyond this many unconfirmed bytes; acks and deletes have a reserve.
  std::uint64_t unconfirmed_bytes_max = std::uint64_t{8} << 20U;
  std::uint64_t reserve_bytes = std::uint64_t{4} << 20U;
  /// Additions are refused beyond this size of the log.
  std::uint64_t log_bytes_max = std::uint64_t{16} << 30U;
};

/// A shard's log that an engine keeps, outside of this machine. Rounds are durable when the
/// Appender has confirmed them. One thread runs the Pump.
///
/// The engine's log is never trimmed here: it is the only copy besides this node's checkpoint, and
/// must outlive the loss of this machine. trim() notes where the next recovery begins to read.
class LogletLog final : public ShardLog {
 public:
  /// `disk` must outlive the log.
  LogletLog(LogletLogOptions options, std::unique_ptr<loglet::Loglet> engine, Disk& disk,
            PartitionFolders partitions);
  LogletLog(const LogletLog&) = delete;
  LogletLog& operator=(const LogletLog&) = delete;
  ~LogletLog() override;

  [[nodiscard]] std::uint64_t round_bytes_max() const override;
  [[nodiscard]] Position first() const override { return Position{1}; }
  [[nodiscard]] Position next() const override;
  /// The first round of a node must come after read(), and becomes the fence of its boot.
  Status append(const NewRound& round) override;
  Result<Position> sync() override;
  Result<Position> settle() override { return sync(); }
  /// Also finds where the log ends: to be called before append(), and not after it.
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override;
  Status trim(Position before) override;
  [[nodiscard]] std::uint64_t bytes_since(Position from) const override;
  [[nodiscard]] Journal::Room room() const override;
  Status prepare() override;
  [[nodiscard]] bool rounds_carry_records() const override { return true; }
  Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) override {
    return partitions_.open_partition(name, opening);
  }
  [[nodiscard]] Result<bool> has_partition(const PartitionName& name) const override {
    return partitions_.has_partition(name);
  }
  Status remove_partition(const PartitionName& name) override {
    return partitions_.remove_partition(name);
  }

 private:
  struct Taken {
    Instant now;
    std::string facts;
  };

  Status read_once(const LogMark& from, Position first,
                   const std::function<Status(const Round&)>& visit) const;
  void note(const loglet::Place& place) const;
  void run();
  void publish();
  void wake() const;
  void wait_for_news(Instant until) const;
  [[nodiscard]] bool is_full() const;

  LogletLogOptions options_;
  Disk& disk_;
  PartitionFolders partitions_;
  std::unique_ptr<loglet::Pump> pump_;  // Of the thread, once it runs.

  mutable std::mutex mutex_;
  mutable std::condition_variable news_came_;  // For the user of the engine.
  mutable bool news_ = false;
  std::condition_variable changed_;  // For sync().
  mutable std::optional<loglet::Appender::Begin> begin_;
  mutable Position next_{1};
  std::deque<Taken> inbox_;  // Bounded by room().
  std::uint64_t inbox_bytes_ = 0;
  Position confirmed_{1};
  Instant confirmed_at_;
  std::uint64_t unconfirmed_bytes_ = 0;  // Of the pump.
  bool fenced_ = false;
  std::optional<Error> broken_;
  std::optional<Error> unable_;
  mutable std::deque<LogMark> marks_;  // Places, some 100 KiB apart, the oldest first.
  mutable std::uint64_t log_bytes_ = 0;
  bool stopping_ = false;

  // Calls wake() until it is destroyed.
  std::unique_ptr<loglet::Loglet> engine_;
  std::thread thread_;
};

}  // namespace baton::cluster
