#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace baton {

/// The broker's data folder: held by one process at a time, with a note of how it is divided.
///
/// ```
///   LOCK           held (flock) by the broker that runs
///   FORMAT         "baton-data 1" and "shards N"
///   shard-0/       journal/  checkpoint/  streams/
///   shard-1/ ...
/// ```
class DataFolder {
 public:
  DataFolder() = default;
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&& other) noexcept;
  ~DataFolder();

  /// Locks the folder, making it (for `shards` shards) when it is new. Fails with folder_in_use,
  /// store_too_new, store_corrupt or io_error, naming the file and what to do.
  static Result<DataFolder> open(const std::string& path, std::size_t shards);
  /// The number of shards of the folder at `path`, without locking it.
  static Result<std::size_t> shards_of(const std::string& path);

  [[nodiscard]] std::size_t shards() const { return shards_; }
  [[nodiscard]] static std::string journal_of(const std::string& path, std::size_t shard);
  [[nodiscard]] static std::string streams_of(const std::string& path, std::size_t shard);
  [[nodiscard]] static std::string checkpoint_of(const std::string& path, std::size_t shard);

 private:
  Status lock(const std::string& path);
  Status make(const std::string& path, std::size_t shards) const;

  int lock_fd_ = -1;
  std::size_t shards_ = 0;
};

}  // namespace baton
