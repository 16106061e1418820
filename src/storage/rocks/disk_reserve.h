#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include "storage/rocks/reserve_file.h"

namespace baton {

/// Keeps a full disk from RocksDB: its files wait for space instead of failing without it. Shared
/// by a store and the files it writes; thread-safe.
///
/// RocksDB 7.8 with atomic flushes does not come back from an error "no space": Flush() answers ok
/// before anything is written, or Resume() hangs. Debian's build also has its assertions on, and
/// one of them ends the process when RocksDB writes to a file after a failed write, as it does with
/// its LOG. So RocksDB never sees that error while it runs: room is set aside before each write. On
/// a file system that cannot set room aside (fallocate) the store fails when another process takes
/// the reserve at the wrong moment, and the process must restart. Files that cannot be opened
/// because too many are open are waited for in the same way.
class DiskReserve {
 public:
  /// Writes of rows leave `bytes` of the disk free, for RocksDB's own records; compactions leave
  /// twice as much, for the rows. Records that find no room at all get the room of a file in
  /// `folder`, which `files` has.
  DiskReserve(std::uint64_t bytes, std::shared_ptr<rocksdb::FileSystem> files,
              const std::string& folder);

  enum class Use : std::uint8_t { record, rows, compaction };
  struct Request {
    Use use;
    std::string path;
    std::uint64_t bytes;
    std::function<rocksdb::IOStatus()> allocate;  // Sets the room aside.
  };

  /// Returns when the room is set aside, or fails when the store closes. A record that finds no
  /// room before the store is open fails at once.
  rocksdb::IOStatus wait_for(const Request& request, rocksdb::FileSystem& files);

  ReserveFile& file() { return file_; }

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
  rocksdb::IOStatus take(const Request& request, rocksdb::FileSystem& files) const;

  std::uint64_t bytes_;
  ReserveFile file_;
  std::atomic<int> rows_waiting_ = 0;
  std::atomic<int> compactions_waiting_ = 0;
  std::atomic<bool> open_ = false;
  std::mutex mutex_;
  std::condition_variable closing_;
  bool closed_ = false;  // Guarded by mutex_.
};

/// `system`, with files that respect `reserve`. `system` must outlive the result.
std::unique_ptr<rocksdb::Env> reserve_disk(rocksdb::Env* system,
                                           std::shared_ptr<DiskReserve> reserve);

}  // namespace baton
