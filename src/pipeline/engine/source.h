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

/// What a source tells the pipeline. Called from the source's threads; of one partition, one call
/// at a time.
class SourceListener {
 public:
  SourceListener() = default;
  SourceListener(const SourceListener&) = delete;
  SourceListener& operator=(const SourceListener&) = delete;
  virtual ~SourceListener() = default;

  /// The partition is ours, under this epoch, and its group has committed everything below `next`.
  /// Answers where delivery is to begin, which may be elsewhere: a sink with marks of its own knows
  /// better. Nothing: it cannot be said now, because the sink is not there; the source keeps the
  /// partition and asks again, with the same epoch. A partition that comes back has another epoch.
  virtual std::optional<std::int64_t> assigned(std::uint32_t partition, std::uint64_t epoch,
                                               std::int64_t next) = 0;
  /// Records in the order of their offsets. Waits while there is no room for them: that is the
  /// back-pressure. False: the partition was revoked meanwhile, and the rest is not wanted.
  virtual bool deliver(std::uint32_t partition, std::vector<Record> records) = 0;
  /// The same without waiting: takes those in front for which there is room, and leaves the rest.
  virtual bool offer(std::uint32_t partition, std::vector<Record>& records) {
    return deliver(partition, std::exchange(records, {}));
  }
  /// Is there room, so that deliver() of a few records would not wait long? For sources whose
  /// thread must not wait.
  [[nodiscard]] virtual bool has_room() const = 0;
  /// Ends a deliver() that waits, at once: the partition is about to go.
  virtual void revoking(std::uint32_t partition) = 0;
  /// Waits for what is in flight, as long as that makes sense, and answers what to commit. After
  /// it nothing of the partition is written any more under this assignment. `lost`: it belongs to
  /// another already, and nothing is to be committed.
  virtual std::optional<std::int64_t> revoked(std::uint32_t partition, bool lost) = 0;
  /// The source has ended by itself.
  virtual void failed(Error error) = 0;
};

/// Whether waiting may help: what is needed is not there now. Anything else is for people to mend.
inline bool may_pass(const Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::deadline_exceeded;
}

struct PartitionLag {
  std::uint32_t partition = 0;
  std::int64_t end = 0;  // The next offset that will be produced, as last seen.
};

/// Where records come from. Thread-safe.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Connects and begins; fails if what it needs is not there, and may then be called again.
  virtual Status start(SourceListener& listener) = 0;
  /// Everything below `next` is over and done with.
  virtual Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) = 0;
  /// The sink is out: take nothing new, stay a member. Until resume().
  virtual void pause() {}
  virtual void resume() {}
  /// Called with records as they end, by the threads of the lanes. For sources that are told of
  /// each record, and not of a mark.
  virtual void ended(std::span<const Item> /*items*/) {}
  /// False: offsets name records, but do not grow, and commit() is not called.
  [[nodiscard]] virtual bool is_ordered() const { return true; }

  /// Connects, verifies that everything it needs is there, and says what it will read. Consumes
  /// nothing.
  virtual Result<Findings> check() = 0;
  /// Revokes everything (calling the listener), commits and leaves.
  virtual Status stop(std::chrono::milliseconds timeout) = 0;

  [[nodiscard]] virtual std::vector<PartitionLag> ends() const = 0;
  /// Why nothing can be read now; nothing: the source answers.
  [[nodiscard]] virtual std::optional<std::string> trouble() const { return std::nullopt; }
  /// The offset of the oldest record of a partition that can still be read: records below it that
  /// are in the pipeline exist nowhere else. Asks the source; nothing: it cannot say now.
  virtual std::optional<std::int64_t> oldest(std::uint32_t /*partition*/) { return std::nullopt; }
  /// "baton-stream:orders".
  [[nodiscard]] virtual std::string name() const = 0;
  /// The name, and what tells this stream from one that had the name before: offsets that are kept
  /// elsewhere are of one life of it. Connects.
  virtual Result<std::string> origin() { return name(); }
};

}  // namespace baton::pipeline
