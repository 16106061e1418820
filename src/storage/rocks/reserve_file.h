#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <rocksdb/file_system.h>

namespace baton {

/// A file in the store's folder that only takes up room. When the disk has no other room left,
/// RocksDB's own records get a piece of the file's. The content means nothing. Thread-safe.
class ReserveFile {
 public:
  ReserveFile(std::shared_ptr<rocksdb::FileSystem> files, const std::string& folder);

  /// Makes the file `bytes` long. Fails with NoSpace when the disk has less room than that; then
  /// the file has taken what there was.
  rocksdb::IOStatus grow_to(std::uint64_t bytes);
  /// Cuts at least `bytes` off the file, or all that is left; false when nothing was left.
  bool give(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  rocksdb::IOStatus grow(std::uint64_t bytes);

  std::shared_ptr<rocksdb::FileSystem> files_;
  std::string path_;
  mutable std::mutex mutex_;
  // Both guarded by mutex_. The file stays open: giving must not fail because no descriptor is
  // free.
  std::unique_ptr<rocksdb::FSWritableFile> file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace baton
