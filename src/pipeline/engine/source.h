#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pipeline/engine/finding.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// What a source tells the pipeline. Called from the source's threads, one call at a time for each
/// partition.
class SourceListener {
 public:
  SourceListener() = default;
  SourceListener(const SourceListener&) = delete;
  SourceListener& operator=(const SourceListener&) = delete;
  virtual ~SourceListener() = default;

  /// The partition is assigned to this process, under this epoch, and its group has committed
  /// everything below `next`. Returns where delivery must begin, which may differ, because a sink
  /// with its own marks knows better. nullopt if the sink is unavailable: the source keeps the
  /// partition and asks again, with the same epoch. A partition that comes back later has another
  /// epoch.
  virtual std::optional<std::int64_t> assigned(std::uint32_t partition, std::uint64_t epoch,
                                               std::int64_t next) = 0;
  /// Takes records in the order of their offsets. Waits while there is no room for them: this is
  /// the back-pressure. False: the partition was revoked meanwhile, and the rest is not wanted.
  virtual bool deliver(std::uint32_t partition, std::vector<Record> records) = 0;
  /// The same without waiting: takes as many of the first records as there is room for, and leaves
  /// the rest.
  virtual bool offer(std::uint32_t partition, std::vector<Record>& records) {
    return deliver(partition, std::exchange(records, {}));
  }
  /// Whether there is room, so that deliver() of a few records would not wait long. For sources
  /// whose thread must not wait.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Ends a waiting deliver() at once: the partition is about to be revoked.
  virtual void revoking(std::uint32_t partition) = 0;
  /// Waits for records in flight, while that is useful, and returns what to commit. After it,
  /// nothing of the partition is written any more under this assignment. `lost`: the partition
  /// already belongs to another process, and nothing must be committed.
  virtual std::optional<std::int64_t> revoked(std::uint32_t partition, bool lost) = 0;
  /// The source has ended by itself.
  virtual void failed(Error error) = 0;
};

/// Whether waiting may help, because a part is unavailable now. An operator must fix any other
/// error.
inline bool may_pass(const Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::deadline_exceeded;
}

struct PartitionLag {
  std::uint32_t partition = 0;
  std::int64_t end = 0;  // The next offset to be produced, as last seen.
};

/// Where records come from. Thread-safe.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Connects and begins. If something it needs is unavailable, it fails, and may be called again.
  virtual Status start(SourceListener& listener) = 0;
  /// Everything below `next` is finished.
  virtual Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) = 0;
  /// The sink is unavailable: take nothing new but stay a member, until resume().
  virtual void pause() {}
  virtual void resume() {}
  /// Called with records when they finish, by the threads of the lanes. For sources that confirm
  /// each record instead of an offset.
  virtual void ended(std::span<const Item> /*items*/) {}
  /// False: offsets name records, but do not grow, and commit() is not called.
  [[nodiscard]] virtual bool is_ordered() const { return true; }

  /// Connects, verifies that everything it needs exists, and says what it will read. Consumes
  /// nothing.
  virtual Result<Findings> check() = 0;
  /// Revokes everything (calling the listener), commits and leaves.
  virtual Status stop(std::chrono::milliseconds timeout) = 0;

  [[nodiscard]] virtual std::vector<PartitionLag> ends() const = 0;
  /// Why nothing can be read now; nullopt if the source answers.
  [[nodiscard]] virtual std::optional<std::string> trouble() const { return std::nullopt; }
  /// The offset of the oldest record of a partition that can still be read: records below it that
  /// are in the pipeline exist nowhere else. Asks the source; nullopt if it cannot answer now.
  virtual std::optional<std::int64_t> oldest(std::uint32_t /*partition*/) { return std::nullopt; }
  /// "baton-stream:orders".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The name, and what distinguishes this stream from an earlier one of the same name: offsets
  /// stored elsewhere belong to one of them only. Connects.
  virtual Result<std::string> origin() { return name(); }
};

}  // namespace baton::pipeline
