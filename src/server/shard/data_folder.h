#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace baton {

/// The broker's data folder: held by one process at a time, with a note of how it is divided.
///
/// ```
///   LOCK           held (flock) by the broker that runs
///   FORMAT         "baton-data 2", "shards N", "id X", and in a cluster "cluster Y"
///   TOKEN-KEY      16 bytes of chance that lease tokens are sealed with
///   shard-0/       SHARD  journal/  checkpoint/  streams/    (shard_marks.h)
///   shard-1/ ...
/// ```
///
/// A folder without FORMAT is taken for a new one only when it holds nothing. All of it belongs to
/// its owner alone.
class DataFolder {
 public:
  DataFolder() = default;
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&& other) noexcept;
  ~DataFolder();

  /// Locks the folder. Creates a new folder, for `shards` shards; marks the shards of a folder that
  /// was made before there were marks; and sets today's format in a folder of an older format.
  /// Fails with folder_in_use, store_too_new, store_corrupt (also if shards are mixed up),
  /// failed_precondition (foreign files) or io_error, and the error names the file and what to do.
  /// `cluster` is the id of the cluster whose logs the shards have; empty: they have journals. A
  /// folder that was made for something else is refused with failed_precondition.
  static Result<DataFolder> open(const std::string& path, std::size_t shards,
                                 const std::string& cluster = {});
  /// The number of shards of the folder at `path`, without locking it.
  static Result<std::size_t> shards_of(const std::string& path);

  [[nodiscard]] std::size_t shards() const { return shards_; }
  [[nodiscard]] static std::string journal_of(const std::string& path, std::size_t shard);
  [[nodiscard]] static std::string streams_of(const std::string& path, std::size_t shard);
  [[nodiscard]] static std::string checkpoint_of(const std::string& path, std::size_t shard);

 private:
  Status lock(const std::string& path);

  int lock_fd_ = -1;
  std::size_t shards_ = 0;
};

}  // namespace baton
