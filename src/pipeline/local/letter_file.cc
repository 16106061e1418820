#include "pipeline/local/letter_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20U;
// Enough for the largest record of any source, in base64.
constexpr std::size_t kLineBytesMax = std::size_t{128} << 20U;
constexpr off_t kLockedBytes = off_t{1} << 62U;

Error failure_at(std::string_view what, const std::string& path) {
  const int error = errno;
  return {error == ENOENT ? Errc::not_found : Errc::io_error,
          fmt::format("{} {}: {}", what, path, std::strerror(error))};  // NOLINT
}

/// A created or renamed file survives a crash only if its folder was synced.
Status sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string name = folder.empty() ? "." : folder.string();
  const int file = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return failure_at("cannot open", name);
  const bool synced = ::fsync(file) == 0;
  const Status status = synced ? Status() : failure_at("cannot sync", name);
  ::close(file);
  return status;
}

struct flock range_of(LetterFile::Lock lock, int type) {
  struct flock range{};
  range.l_type = static_cast<std::int16_t>(type);
  range.l_whence = SEEK_SET;
  range.l_start = kLockedBytes + std::to_underlying(lock);
  range.l_len = 1;
  return range;
}

}  // namespace

Result<LetterFile> LetterFile::open(const std::string& path, Use use) {
  // Not O_APPEND for a file that is overwritten: Linux would append these writes, too.
  const int flags = use == Use::read   ? O_RDONLY
                    : use == Use::take ? O_RDWR
                                       : O_RDWR | O_APPEND | O_CREAT;
  const bool is_new = use == Use::append && ::access(path.c_str(), F_OK) != 0;
  const int file = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (file < 0) return failure_at("cannot open", path);
  LetterFile opened(path, file, use);
  if (is_new) BATON_TRY_STATUS(sync_folder_of(path));
  return opened;
}

LetterFile::LetterFile(LetterFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), use_(other.use_) {}

LetterFile& LetterFile::operator=(LetterFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(use_, other.use_);
  return *this;
}

LetterFile::~LetterFile() {
  if (file_ >= 0) ::close(file_);
}

Error LetterFile::failure(std::string_view what) const { return failure_at(what, path_); }

Status LetterFile::lock(Lock lock) {
  struct flock range = range_of(lock, use_ == Use::read ? F_RDLCK : F_WRLCK);
  const int command = lock == Lock::taking ? F_OFD_SETLK : F_OFD_SETLKW;
  while (::fcntl(file_, command, &range) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EACCES) {
      return Error{Errc::failed_precondition,
                   fmt::format("another process is already taking letters out of {}", path_)};
    }
    return failure("cannot lock");
  }
  return {};
}

void LetterFile::unlock(Lock lock) {
  struct flock range = range_of(lock, F_UNLCK);
  (void)::fcntl(file_, F_OFD_SETLK, &range);
}

bool LetterFile::is_current() const {
  struct stat ours{};
  struct stat named{};
  return ::fstat(file_, &ours) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

Status LetterFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure("cannot write to");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status LetterFile::overwrite(off_t at, char byte) {
  while (::pwrite(file_, &byte, 1, at) != 1) {
    if (errno != EINTR) return failure("cannot write to");
  }
  return {};
}

Status LetterFile::sync() {
  if (::fdatasync(file_) != 0) return failure("cannot sync");
  return {};
}

Result<off_t> LetterFile::size() const {
  struct stat about{};
  if (::fstat(file_, &about) != 0) return failure("cannot read");
  return about.st_size;
}

Result<std::string> LetterFile::read(off_t at, std::size_t bytes) const {
  std::string result(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got =
        ::pread(file_, result.data() + have, bytes - have, at + static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("cannot read");
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  result.resize(have);
  return result;
}

Status LetterFile::replace_by(LetterFile& other) {
  struct stat about{};
  if (::fstat(file_, &about) != 0 || ::fchmod(other.file_, about.st_mode & 07777U) != 0) {
    return failure("cannot replace");
  }
  // Only root can give the new file the owner of the old one.
  (void)!::fchown(other.file_, about.st_uid, about.st_gid);
  if (::fsync(other.file_) != 0) return other.failure("cannot sync");
  if (::rename(other.path_.c_str(), path_.c_str()) != 0) return failure("cannot replace");
  return sync_folder_of(path_);
}

Result<std::optional<LetterLines::Line>> LetterLines::next() {
  Line line{.at = at_, .number = ++number_};
  while (true) {
    const std::string_view rest = std::string_view(buffer_).substr(used_);
    const std::size_t newline = rest.find('\n');
    const std::string_view part = rest.substr(0, newline);
    const std::size_t room = kLineBytesMax - line.text.size();
    line.too_long = line.too_long || part.size() > room;
    line.text += part.substr(0, room);
    const std::size_t used = newline == std::string_view::npos ? rest.size() : newline + 1;
    line.bytes += static_cast<off_t>(used);
    used_ += used;
    at_ += static_cast<off_t>(used);
    if (newline != std::string_view::npos) return line;
    BATON_TRY(buffer_, file_.read(at_, std::min(kReadBytes, static_cast<std::size_t>(end_ - at_))));
    used_ = 0;
    if (!buffer_.empty()) continue;
    if (line.bytes > 0) return line;
    return std::nullopt;
  }
}

}  // namespace baton::pipeline
