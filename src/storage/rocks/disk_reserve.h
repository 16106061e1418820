#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

namespace baton {

/// Keeps a full disk from RocksDB: its table files wait for space instead of failing without it.
/// Shared by a store and the files it writes; thread-safe.
///
/// RocksDB 7.8 with atomic flushes does not come back from an error "no space": Flush() answers ok
/// before anything is written, or Resume() hangs. So it never sees one, unless another process
/// takes the reserve while a megabyte is being written; then the store fails and the process must
/// restart. The same goes for files that cannot be opened because too many are open.
class DiskReserve {
 public:
  /// Writes of rows leave `bytes` of the disk free, for RocksDB's own records; compactions leave
  /// twice as much, for the rows.
  explicit DiskReserve(std::uint64_t bytes) : bytes_(bytes) {}

  enum class Use : std::uint8_t { rows, compaction };
  struct Request {
    Use use;
    std::string path;
    std::uint64_t bytes;
  };

  /// Returns when the disk has room for the request, or fails when the store closes.
  rocksdb::IOStatus wait_for(const Request& request, rocksdb::FileSystem& files);

  /// Whether a thread waits now.
  [[nodiscard]] bool rows_wait() const { return rows_waiting_ > 0; }
  [[nodiscard]] bool compactions_wait() const { return compactions_waiting_ > 0; }

  /// The store is open: from now on, a thread that finds no free file descriptor waits for one.
  void set_open() { open_ = true; }
  /// Pauses before the next attempt; returns false when there is nothing to wait for.
  bool wait_for_descriptor();

  /// Makes every wait fail, now and later: the store is closing.
  void close();

 private:
  std::uint64_t bytes_;
  std::atomic<int> rows_waiting_ = 0;
  std::atomic<int> compactions_waiting_ = 0;
  std::atomic<bool> open_ = false;
  std::mutex mutex_;
  std::condition_variable closing_;
  bool closed_ = false;  // Guarded by mutex_.
};

/// `system`, with table files that respect `reserve`. `system` must outlive the result.
std::unique_ptr<rocksdb::Env> reserve_disk(rocksdb::Env* system,
                                           std::shared_ptr<DiskReserve> reserve);

}  // namespace baton
