#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/stream/catalog.h"
#include "storage/log/partition_log.h"
#include "storage/log/partition_reader.h"

namespace baton {

/// Is woken when there is more to read.
class PartitionWaiter {
 public:
  PartitionWaiter() = default;
  PartitionWaiter(const PartitionWaiter&) = delete;
  PartitionWaiter& operator=(const PartitionWaiter&) = delete;
  virtual ~PartitionWaiter() = default;

  /// Called from any thread; must not block.
  virtual void wake() = 0;
};

/// One partition: the log that its shard writes, and the readers that wait for more records.
///
/// Threads: log() belongs to the shard's deciding thread, sync() to its releasing thread. Any
/// thread may call the rest. Readers share a lock with each other and with the releasing thread,
/// only while a waiter is registered or woken; they share no lock with the thread that writes.
class StreamPartition {
 public:
  StreamPartition(StreamId stream, PartitionNumber number, std::unique_ptr<PartitionLog> log);

  [[nodiscard]] PartitionLog& log() { return *log_; }
  [[nodiscard]] StreamId stream() const { return stream_; }
  [[nodiscard]] PartitionNumber number() const { return number_; }

  /// Makes everything appended before the call durable and visible to readers.
  Status sync();
  /// Every record before it is durable.
  [[nodiscard]] Offset synced_end() const { return Offset{synced_end_.load()}; }
  /// Makes everything appended so far visible to readers, durable or not.
  void publish_all();

  [[nodiscard]] PartitionReader reader() const { return log_->reader(); }
  /// Wakes `waiter` once, when there is a record at `offset` or the partition is closed. False if
  /// that is already so.
  bool wait(Offset offset, const std::weak_ptr<PartitionWaiter>& waiter);
  /// The number of registered waiters, including those that are gone.
  [[nodiscard]] std::size_t waiters();
  /// The stream was deleted: no more records will come.
  void close();
  [[nodiscard]] bool closed() const { return closed_.load(); }

 private:
  void wake_all();

  StreamId stream_;
  PartitionNumber number_;
  std::unique_ptr<PartitionLog> log_;
  std::atomic<std::int64_t> synced_end_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::vector<std::weak_ptr<PartitionWaiter>> waiters_;
  static constexpr std::size_t kPruneAtMin = 64;
  std::size_t prune_at_ = kPruneAtMin;
};

}  // namespace baton
