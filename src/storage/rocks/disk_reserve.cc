#include "storage/rocks/disk_reserve.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <rocksdb/system_clock.h>

namespace baton {
namespace {

// A table file asks for space at its beginning and after each of these many bytes.
constexpr std::uint64_t kAskBytes = std::uint64_t{1} << 20U;
// Poll interval of a thread that waits for space.
constexpr std::chrono::milliseconds kLookAgain{20};

/// A table file in the making. Used by one RocksDB thread at a time.
class TableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  struct Place {
    std::string path;
    std::shared_ptr<rocksdb::FileSystem> files;
    std::shared_ptr<DiskReserve> reserve;
  };

  TableFile(std::unique_ptr<rocksdb::FSWritableFile> file, Place place)
      : FSWritableFileOwnerWrapper(std::move(file)), place_(std::move(place)) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus granted = ask(bytes.size());
    return granted.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, debug) : granted;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus granted = ask(bytes.size());
    if (!granted.ok()) return granted;
    return FSWritableFileOwnerWrapper::Append(bytes, options, verification, debug);
  }

 private:
  rocksdb::IOStatus ask(std::uint64_t bytes) {
    if (bytes > granted_bytes_) {
      // RocksDB writes compactions at low priority and flushes at high.
      const bool compaction = GetIOPriority() == rocksdb::Env::IO_LOW;
      rocksdb::IOStatus status = place_.reserve->wait_for(
          {.use = compaction ? DiskReserve::Use::compaction : DiskReserve::Use::rows,
           .path = place_.path,
           .bytes = bytes},
          *place_.files);
      if (!status.ok()) return status;
      granted_bytes_ = bytes + kAskBytes;
    }
    granted_bytes_ -= bytes;
    return rocksdb::IOStatus::OK();
  }

  Place place_;
  std::uint64_t granted_bytes_ = 0;
};

/// RocksDB does not pass errno on, only its text.
bool has_too_many_files(const rocksdb::IOStatus& status) {
  return status.IsIOError() && status.ToString().find("Too many open files") != std::string::npos;
}

class ReservedDisk final : public rocksdb::FileSystemWrapper {
 public:
  ReservedDisk(const std::shared_ptr<rocksdb::FileSystem>& files,
               std::shared_ptr<DiskReserve> reserve)
      : FileSystemWrapper(files), reserve_(std::move(reserve)) {}

  [[nodiscard]] const char* Name() const override { return "baton.reserved_disk"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status =
        open([&] { return FileSystemWrapper::NewWritableFile(path, options, result, debug); });
    if (status.ok() && std::string_view(path).ends_with(".sst")) {
      *result = std::make_unique<TableFile>(
          std::move(*result),
          TableFile::Place{.path = path, .files = target_, .reserve = reserve_});
    }
    return status;
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override {
    return open(
        [&] { return FileSystemWrapper::NewRandomAccessFile(path, options, result, debug); });
  }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override {
    return open([&] { return FileSystemWrapper::NewSequentialFile(path, options, result, debug); });
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override {
    return open([&] { return FileSystemWrapper::NewDirectory(path, options, result, debug); });
  }

 private:
  template <class Open>
  rocksdb::IOStatus open(const Open& attempt) {
    rocksdb::IOStatus status = attempt();
    while (has_too_many_files(status) && reserve_->wait_for_descriptor()) status = attempt();
    return status;
  }

  std::shared_ptr<DiskReserve> reserve_;
};

class ReservedSystem final : public rocksdb::EnvWrapper {
 public:
  ReservedSystem(rocksdb::Env* system, std::shared_ptr<DiskReserve> reserve) : EnvWrapper(system) {
    file_system_ = std::make_shared<ReservedDisk>(system->GetFileSystem(), std::move(reserve));
    system_clock_ = system->GetSystemClock();
  }
};

/// Counts the waiting threads, while in scope.
class Waiting {
 public:
  explicit Waiting(std::atomic<int>& count) : count_(count) { ++count_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { --count_; }

 private:
  std::atomic<int>& count_;
};

}  // namespace

rocksdb::IOStatus DiskReserve::wait_for(const Request& request, rocksdb::FileSystem& files) {
  const bool rows = request.use == Use::rows;
  const std::uint64_t wanted = (rows ? bytes_ : 2 * bytes_) + request.bytes;
  std::optional<Waiting> waiting;
  for (;;) {
    std::uint64_t free_bytes = 0;
    rocksdb::IOStatus status =
        files.GetFreeSpace(request.path, rocksdb::IOOptions(), &free_bytes, nullptr);
    if (!status.ok() || free_bytes >= wanted) return status;
    if (!waiting.has_value()) waiting.emplace(rows ? rows_waiting_ : compactions_waiting_);
    std::unique_lock lock(mutex_);
    if (closing_.wait_for(lock, kLookAgain, [&] { return closed_; })) {
      return rocksdb::IOStatus::NoSpace("the store closes while it waits for space", request.path);
    }
  }
}

bool DiskReserve::wait_for_descriptor() {
  if (!open_) return false;
  std::unique_lock lock(mutex_);
  return !closing_.wait_for(lock, kLookAgain, [&] { return closed_; });
}

void DiskReserve::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  closing_.notify_all();
}

std::unique_ptr<rocksdb::Env> reserve_disk(rocksdb::Env* system,
                                           std::shared_ptr<DiskReserve> reserve) {
  return std::make_unique<ReservedSystem>(system, std::move(reserve));
}

}  // namespace baton
