#include "broker/data_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr std::size_t kFormat = 1;
constexpr std::size_t kShardsMax = 256;

Error io_error(std::string_view what, const std::string& path) {
  const Errc code = errno == ENOSPC ? Errc::disk_full : Errc::io_error;
  return {code, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno))};
}

Status make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) {
    return Error{Errc::io_error,
                 fmt::format("cannot make the folder '{}': {}", path, failure.message())};
  }
  return {};
}

/// Writes the file beside its place, syncs it, and moves it there: it is whole or not there.
Status write_file(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name;
  const std::string draft = path + ".new";
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return io_error("make", draft);
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  ::close(file);
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0) return io_error("write", path);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return io_error("open", folder);
  const bool synced = ::fsync(directory) == 0;
  ::close(directory);
  if (!synced) return io_error("sync", folder);
  return {};
}

}  // namespace

DataFolder::DataFolder(DataFolder&& other) noexcept
    : lock_fd_(std::exchange(other.lock_fd_, -1)), shards_(other.shards_) {}

DataFolder& DataFolder::operator=(DataFolder&& other) noexcept {
  std::swap(lock_fd_, other.lock_fd_);
  std::swap(shards_, other.shards_);
  return *this;
}

DataFolder::~DataFolder() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

std::string DataFolder::journal_of(const std::string& path, std::size_t shard) {
  return fmt::format("{}/shard-{}/journal", path, shard);
}

std::string DataFolder::checkpoint_of(const std::string& path, std::size_t shard) {
  return fmt::format("{}/shard-{}/checkpoint", path, shard);
}

std::string DataFolder::streams_of(const std::string& path, std::size_t shard) {
  return fmt::format("{}/shard-{}/streams", path, shard);
}

Status DataFolder::lock(const std::string& path) {
  const std::string file = path + "/LOCK";
  lock_fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_fd_ < 0) return io_error("open", file);
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return io_error("lock", file);
  return Error{
      Errc::folder_in_use,
      fmt::format("the data folder '{}' is in use by another broker (it holds '{}')", path, file)};
}

Result<std::size_t> DataFolder::shards_of(const std::string& path) {
  const std::string file = path + "/FORMAT";
  std::ifstream in(file);
  std::string name;
  std::string word;
  std::size_t format = 0;
  std::size_t shards = 0;
  if (!in.is_open()) {
    return Error{Errc::not_found,
                 fmt::format("'{}' is not there: '{}' is no data folder of baton", file, path)};
  }
  in >> name >> format >> word >> shards;
  if (name == "baton-data" && format > kFormat) {
    return Error{
        Errc::store_too_new,
        fmt::format("'{}' says format {}; this version knows {}: run the newer version of baton",
                    file, format, kFormat)};
  }
  if (in.fail() || name != "baton-data" || word != "shards" || shards == 0 || shards > kShardsMax) {
    return Error{
        Errc::store_corrupt,
        fmt::format("'{}' cannot be understood; restore it from a copy of the data folder", file)};
  }
  return shards;
}

Status DataFolder::make(const std::string& path, std::size_t shards) const {
  for (std::size_t shard = 0; shard < shards; ++shard) {
    BATON_TRY_STATUS(make_folder(fmt::format("{}/shard-{}", path, shard)));
  }
  // Last: a folder without it was never finished.
  return write_file(path, "FORMAT", fmt::format("baton-data {}\nshards {}\n", kFormat, shards));
}

Result<DataFolder> DataFolder::open(const std::string& path, std::size_t shards) {
  if (shards == 0 || shards > kShardsMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("shards is {}; it may be 1 to {}", shards, kShardsMax)};
  }
  BATON_TRY_STATUS(make_folder(path));
  DataFolder folder;
  BATON_TRY_STATUS(folder.lock(path));
  Result<std::size_t> known = shards_of(path);
  if (!known.has_value() && known.error().code == Errc::not_found) {
    BATON_TRY_STATUS(folder.make(path, shards));
    known = shards;
  }
  if (!known.has_value()) return std::move(known).error();
  folder.shards_ = *known;
  return folder;
}

}  // namespace baton
