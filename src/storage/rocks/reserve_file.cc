#include "storage/rocks/reserve_file.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace baton {
namespace {

// What is written, and given up, at a time.
constexpr std::uint64_t kPiece = std::uint64_t{64} << 10U;

/// Bytes that a file system which compresses cannot make smaller.
std::string noise() {
  Random random(1);
  std::string bytes;
  while (bytes.size() < kPiece) {
    const std::uint64_t word = random.next();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  return bytes;
}

}  // namespace

ReserveFile::ReserveFile(std::shared_ptr<rocksdb::FileSystem> files, const std::string& folder)
    : files_(std::move(files)), path_(folder + "/RESERVE") {}

std::uint64_t ReserveFile::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

rocksdb::IOStatus ReserveFile::grow_to(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (file_ != nullptr && bytes_ >= bytes) return rocksdb::IOStatus::OK();
  if (file_ == nullptr) {
    rocksdb::IOStatus opened =
        files_->ReopenWritableFile(path_, rocksdb::FileOptions(), &file_, nullptr);
    if (!opened.ok()) return opened;
  }
  rocksdb::IOStatus grown = grow(bytes);
  // A write that failed may have taken a part of its room.
  rocksdb::IOStatus found = files_->GetFileSize(path_, rocksdb::IOOptions(), &bytes_, nullptr);
  return grown.ok() ? found : grown;
}

rocksdb::IOStatus ReserveFile::grow(std::uint64_t bytes) {
  rocksdb::IOStatus status = files_->GetFileSize(path_, rocksdb::IOOptions(), &bytes_, nullptr);
  const std::string piece = noise();
  while (status.ok() && bytes_ < bytes) {
    const rocksdb::Slice part(piece.data(), std::min(kPiece, bytes - bytes_));
    status = file_->Append(part, rocksdb::IOOptions(), nullptr);
    bytes_ += part.size();
  }
  // Some file systems choose the blocks only now.
  rocksdb::IOStatus synced = file_->Sync(rocksdb::IOOptions(), nullptr);
  return status.ok() ? synced : status;
}

bool ReserveFile::give(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t given = std::min(bytes_, (bytes + kPiece - 1) / kPiece * kPiece);
  if (given == 0) return false;
  if (!file_->Truncate(bytes_ - given, rocksdb::IOOptions(), nullptr).ok()) return false;
  bytes_ -= given;
  return true;
}

}  // namespace baton
