#include "storage/rocks/disk_reserve.h"

#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <rocksdb/system_clock.h>

namespace baton {
namespace {

// Poll interval of a thread that waits for space.
constexpr std::chrono::milliseconds kLookAgain{20};

/// A file that RocksDB writes: it asks for room before every write. Used by one RocksDB thread at a
/// time.
class WrittenFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  struct Place {
    std::string path;
    std::shared_ptr<rocksdb::FileSystem> files;
    std::shared_ptr<DiskReserve> reserve;
  };

  WrittenFile(std::unique_ptr<rocksdb::FSWritableFile> file, Place place)
      : FSWritableFileOwnerWrapper(std::move(file)),
        place_(std::move(place)),
        is_table_(std::string_view(place_.path).ends_with(".sst")) {}

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
  /// RocksDB would set megabytes aside here, out of the room that others are to have.
  void PrepareWrite(std::size_t, std::size_t, const rocksdb::IOOptions&,
                    rocksdb::IODebugContext*) override {}

 private:
  rocksdb::IOStatus ask(std::uint64_t bytes) {
    rocksdb::IOStatus status = place_.reserve->wait_for(
        {.use = use(),
         .path = place_.path,
         .bytes = bytes,
         .allocate = [&] { return Allocate(end_, bytes, rocksdb::IOOptions(), nullptr); }},
        *place_.files);
    if (status.ok()) end_ += bytes;
    return status;
  }
  [[nodiscard]] DiskReserve::Use use() {
    if (!is_table_) return DiskReserve::Use::record;
    // RocksDB writes compactions at low priority and flushes at high.
    return GetIOPriority() == rocksdb::Env::IO_LOW ? DiskReserve::Use::compaction
                                                   : DiskReserve::Use::rows;
  }

  Place place_;
  bool is_table_;
  std::uint64_t end_ = 0;  // How much was asked for: each byte is asked for once, in order.
};

/// RocksDB's LOG: lines that find no room are left out. RocksDB would write the next line after a
/// failed one, which is what its assertion is against.
class LogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  using FSWritableFileOwnerWrapper::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    FSWritableFileOwnerWrapper::Append(bytes, options, debug).PermitUncheckedError();
    return rocksdb::IOStatus::OK();
  }
  void PrepareWrite(std::size_t, std::size_t, const rocksdb::IOOptions&,
                    rocksdb::IODebugContext*) override {}
};

bool is_log(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("LOG"); }

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
    if (status.ok() && is_log(path)) {
      *result = std::make_unique<LogFile>(std::move(*result));
    } else if (status.ok()) {
      *result = std::make_unique<WrittenFile>(
          std::move(*result),
          WrittenFile::Place{.path = path, .files = target_, .reserve = reserve_});
    }
    return status;
  }
  /// The wrapped file system would open the LOG without asking us.
  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result,
                              rocksdb::IODebugContext* debug) override {
    // NOLINTNEXTLINE(bugprone-parent-virtual-call): the wrapper's is what must not be called.
    return rocksdb::FileSystem::NewLogger(path, options, result, debug);
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

DiskReserve::DiskReserve(std::uint64_t bytes, std::shared_ptr<rocksdb::FileSystem> files,
                         const std::string& folder)
    : bytes_(bytes), file_(std::move(files), folder) {}

rocksdb::IOStatus DiskReserve::take(const Request& request, rocksdb::FileSystem& files) const {
  if (request.use != Use::record) {
    const std::uint64_t left = request.use == Use::rows ? bytes_ : 2 * bytes_;
    std::uint64_t free_bytes = 0;
    rocksdb::IOStatus status =
        files.GetFreeSpace(request.path, rocksdb::IOOptions(), &free_bytes, nullptr);
    if (!status.ok()) return status;
    if (free_bytes < left + request.bytes) return rocksdb::IOStatus::NoSpace(request.path);
  }
  rocksdb::IOStatus allocated = request.allocate();
  // Not every file system can set room aside; such a one says so by another error.
  return allocated.IsNoSpace() ? allocated : rocksdb::IOStatus::OK();
}

rocksdb::IOStatus DiskReserve::wait_for(const Request& request, rocksdb::FileSystem& files) {
  std::optional<Waiting> waiting;
  auto& counter = request.use == Use::compaction ? compactions_waiting_ : rows_waiting_;
  for (;;) {
    rocksdb::IOStatus taken = take(request, files);
    if (!taken.IsNoSpace()) return taken;
    if (request.use == Use::record && file_.give(request.bytes)) continue;
    if (request.use == Use::record && !open_) return taken;
    if (!waiting.has_value()) waiting.emplace(counter);
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
