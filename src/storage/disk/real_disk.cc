#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "storage/disk/disk.h"

namespace baton {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kFolderMode = 0700;

Errc errc_of(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT: return Errc::disk_full;
    case EMFILE:
    case ENFILE: return Errc::resource_exhausted;
    case ENOENT: return Errc::not_found;
    case EEXIST: return Errc::already_exists;
    default: return Errc::io_error;
  }
}

Error system_error(std::string_view action, const std::string& path, int number) {
  const char* const text = strerrordesc_np(number);
  return {errc_of(number),
          fmt::format("cannot {} {}: {}", action, path, text != nullptr ? text : "unknown error")};
}

// Repeats a system call that a signal interrupted.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Status done_or_error(int result, std::string_view action, const std::string& path) {
  if (result < 0) return system_error(action, path, errno);
  return {};
}

/// A file of the machine. Owns its descriptor.
class RealFile final : public File {
 public:
  RealFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;
  ~RealFile() override { ::close(descriptor_); }

  Status write_at(std::uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = retry([&] {
        return ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (count < 0) return system_error("write to", path_, errno);
      // Linux never returns 0 here; on a system that does, this must not spin.
      if (count == 0)
        return Error{Errc::io_error, fmt::format("cannot write to {}: no progress", path_)};
      bytes.remove_prefix(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return {};
  }

  Result<std::string> read_at(std::uint64_t offset, std::uint64_t count) const override {
    // Bounded by the file's size, so that a huge `count` does not reserve memory in vain.
    BATON_TRY(const std::uint64_t bytes_max, size());
    std::string bytes;
    int failure = 0;
    // Not filled with zeros first: a large read would touch its memory twice.
    bytes.resize_and_overwrite(
        offset < bytes_max ? std::min(count, bytes_max - offset) : 0,
        [&](char* to, std::size_t wanted) { return read_some(to, wanted, offset, failure); });
    if (failure != 0) return system_error("read from", path_, failure);
    return bytes;
  }

  Status sync() override {
    return done_or_error(retry([&] { return ::fdatasync(descriptor_); }), "sync", path_);
  }

  Status allocate(std::uint64_t size) override {
    const int result =
        retry([&] { return ::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)); });
    // Some file systems have no fallocate; writing zeros reserves the space as well.
    if (result < 0 && errno == EOPNOTSUPP) return extend_with_zeros(size);
    return done_or_error(result, "allocate space for", path_);
  }

  Status truncate(std::uint64_t size) override {
    return done_or_error(retry([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }),
                         "truncate", path_);
  }

  Result<std::uint64_t> size() const override {
    struct stat status{};
    if (::fstat(descriptor_, &status) < 0) return system_error("examine", path_, errno);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  // Returns how many bytes were read; sets `failure` to the error's number, if there was one.
  std::size_t read_some(char* to, std::size_t wanted, std::uint64_t offset, int& failure) const {
    std::size_t have = 0;
    while (have < wanted) {
      const ssize_t got = retry([&] {
        return ::pread(descriptor_, to + have, wanted - have, static_cast<off_t>(offset + have));
      });
      if (got < 0) failure = errno;
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    return have;
  }

  Status extend_with_zeros(std::uint64_t end) {
    const std::string zeros(std::size_t{1} << 20U, '\0');
    BATON_TRY(std::uint64_t at, size());
    while (at < end) {
      const std::uint64_t count = std::min<std::uint64_t>(zeros.size(), end - at);
      BATON_TRY_STATUS(write_at(at, std::string_view(zeros).substr(0, count)));
      at += count;
    }
    return {};
  }

  int descriptor_;
  std::string path_;
};

/// An open folder. Owns its stream.
class FolderStream {
 public:
  explicit FolderStream(const std::string& folder) : stream_(::opendir(folder.c_str())) {}
  FolderStream(const FolderStream&) = delete;
  FolderStream& operator=(const FolderStream&) = delete;
  ~FolderStream() {
    if (stream_ != nullptr) ::closedir(stream_);
  }

  [[nodiscard]] bool is_open() const { return stream_ != nullptr; }
  /// The next entry; null at the end (errno 0) and on failure (errno set).
  dirent* next() {
    errno = 0;
    return ::readdir(stream_);
  }
  [[nodiscard]] bool is_folder(const dirent& entry) const {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    struct stat status{};
    if (::fstatat(::dirfd(stream_), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) return false;
    return S_ISDIR(status.st_mode);
  }

 private:
  DIR* stream_;
};

/// A descriptor in reserve, closed when the process has no other left.
class Spare {
 public:
  explicit Spare(int descriptor) : descriptor_(descriptor) {}
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  Spare(Spare&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Spare& operator=(Spare&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Spare() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_;
};

class RealDisk final : public Disk {
 public:
  RealDisk() { fill_spares(); }

  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return open_with(path, O_RDWR, "open");
  }

  Result<std::unique_ptr<File>> create(const std::string& path) override {
    return open_with(path, O_RDWR | O_CREAT | O_TRUNC, "create");
  }

  Result<std::vector<std::string>> list(const std::string& folder) const override {
    std::vector<std::string> names;
    FolderStream stream(folder);
    if (!stream.is_open() && errno == ENOENT) return names;
    if (!stream.is_open()) return system_error("list the folder", folder, errno);
    for (const dirent* entry = stream.next(); entry != nullptr; entry = stream.next()) {
      if (!stream.is_folder(*entry)) names.emplace_back(entry->d_name);
    }
    if (errno != 0) return system_error("list the folder", folder, errno);
    std::ranges::sort(names);
    return names;
  }

  Status make_folder(const std::string& folder) override {
    if (::mkdir(folder.c_str(), kFolderMode) == 0) return {};
    const int number = errno;
    struct stat status{};
    const bool exists = ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    if (number == EEXIST && exists) return {};
    return system_error("make the folder", folder, number);
  }

  Status rename(const std::string& from, const std::string& to) override {
    return done_or_error(::rename(from.c_str(), to.c_str()), "rename to " + to + " from", from);
  }

  Status remove(const std::string& path) override {
    return done_or_error(::unlink(path.c_str()), "remove", path);
  }

  Status sync_folder(const std::string& folder) override {
    const std::scoped_lock lock(spares_mutex_);
    int descriptor = open_folder(folder);
    // What is written already must become durable, even if other code has taken all descriptors.
    for (; descriptor < 0 && (errno == EMFILE || errno == ENFILE) && !spares_.empty();
         descriptor = open_folder(folder)) {
      spares_.pop_back();
    }
    if (descriptor < 0) {
      const Error error = system_error("open the folder", folder, errno);
      fill_spares();
      return error;
    }
    Status status =
        done_or_error(retry([&] { return ::fsync(descriptor); }), "sync the folder", folder);
    ::close(descriptor);
    fill_spares();
    return status;
  }

  Result<std::uint64_t> free_bytes(const std::string& folder) const override {
    struct statvfs status{};
    if (::statvfs(folder.c_str(), &status) < 0) return system_error("examine", folder, errno);
    return std::uint64_t{status.f_bavail} * status.f_frsize;
  }

  Result<std::uint64_t> random_number() override {
    std::uint64_t number = 0;
    const ssize_t count = retry([&] { return ::getrandom(&number, sizeof number, 0); });
    if (count != static_cast<ssize_t>(sizeof number)) {
      return system_error("read random bytes from", "the system", errno);
    }
    return number;
  }

 private:
  static constexpr std::size_t kSpares = 8;

  static int open_folder(const std::string& folder) {
    return retry([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  }

  void fill_spares() {
    while (spares_.size() < kSpares) {
      const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (descriptor < 0) return;
      spares_.emplace_back(descriptor);
    }
  }

  std::mutex spares_mutex_;
  std::vector<Spare> spares_;

  static Result<std::unique_ptr<File>> open_with(const std::string& path, int flags,
                                                 std::string_view action) {
    const int descriptor =
        retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
    if (descriptor < 0) return system_error(action, path, errno);
    return std::unique_ptr<File>(std::make_unique<RealFile>(descriptor, path));
  }
};

}  // namespace

std::unique_ptr<Disk> make_real_disk() { return std::make_unique<RealDisk>(); }

}  // namespace baton
