#include "server/shard/data_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "base/growing.h"
#include "server/shard/shard_marks.h"

namespace baton {
namespace {

constexpr std::size_t kShardsMax = 256;
/// The beginning of FORMAT; the format's number follows, with one digit.
constexpr std::string_view kBegin = "baton-data ";
static_assert(kStoreFormat < 10);

Error io_error(std::string_view what, const std::string& path) {
  const Errc code = errno == ENOSPC ? Errc::disk_full : Errc::io_error;
  return {code, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno))};
}

/// The contents of FORMAT.
struct Format {
  std::size_t number = kStoreFormat;
  std::size_t shards = 0;
  std::string id;       // Empty if the folder was made before shards had marks.
  std::string cluster;  // The id of the cluster that has the shards' logs; empty: they are here.
};

Result<Format> read_format(const std::string& path) {
  const std::string file = path + "/FORMAT";
  std::ifstream in(file);
  std::string name;
  std::string word;
  Format format;
  if (!in.is_open()) {
    return Error{
        Errc::not_found,
        fmt::format("'{}' does not exist: '{}' is not a data folder of baton", file, path)};
  }
  in >> name >> format.number >> word >> format.shards;
  if (name == "baton-data" && format.number > kStoreFormat) {
    return Error{
        Errc::store_too_new,
        fmt::format("'{}' says format {}; this version knows {}: run the newer version of baton",
                    file, format.number, kStoreFormat)};
  }
  bool sound = !in.fail() && name == "baton-data" && word == "shards" && format.shards != 0 &&
               format.shards <= kShardsMax;
  if (sound && in >> word) sound = word == "id" && in >> format.id;
  if (sound && in >> word) sound = word == "cluster" && in >> format.cluster;
  if (!sound) {
    return Error{
        Errc::store_corrupt,
        fmt::format("'{}' cannot be understood; restore it from a copy of the data folder", file)};
  }
  return format;
}

Status write_format(const std::string& path, const Format& format) {
  return write_small_file(
      path, "FORMAT",
      fmt::format("{}{}\nshards {}\nid {}\n{}", kBegin, kStoreFormat, format.shards, format.id,
                  format.cluster.empty() ? "" : fmt::format("cluster {}\n", format.cluster)));
}

/// The rounds of a folder are where it was made to have them.
Status check_cluster(const std::string& path, const Format& format, const std::string& cluster) {
  if (format.cluster == cluster) return {};
  const auto refuse = [](std::string text) {
    return Error{Errc::failed_precondition, std::move(text)};
  };
  if (cluster.empty()) {
    return refuse(
        fmt::format("the data folder '{}' belongs to a node of a cluster: start it with "
                    "--cluster",
                    path));
  }
  if (format.cluster.empty()) {
    return refuse(
        fmt::format("the data folder '{}' belongs to a broker without a cluster; choose "
                    "an empty folder",
                    path));
  }
  return refuse(
      fmt::format("the data folder '{}' belongs to another cluster, with the id {}, not "
                  "{}; choose an empty folder",
                  path, format.cluster, cluster));
}

/// Sets today's format in FORMAT. Called before a byte of that format is written, so that no older
/// version takes such bytes for damage. One byte changes in place: that works on a full disk, and a
/// crash leaves either the old byte or the new one.
Status raise_format(const std::string& path, const Format& format) {
  const std::string file = path + "/FORMAT";
  const int opened = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) return io_error("open", file);
  std::array<char, kBegin.size() + 1> begin{};
  const char digit = static_cast<char>('0' + kStoreFormat);
  const bool as_written =
      ::pread(opened, begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) &&
      std::string_view(begin.data(), begin.size()) == fmt::format("{}{}", kBegin, format.number);
  const bool raised = as_written &&
                      ::pwrite(opened, &digit, 1, static_cast<off_t>(kBegin.size())) == 1 &&
                      ::fsync(opened) == 0;
  const Error failure = io_error("write", file);
  ::close(opened);
  // The file was edited manually: it is written again.
  if (!as_written) return write_format(path, format);
  if (!raised) return failure;
  return {};
}

Status make_folder(const std::string& path) {
  std::error_code failure;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failure);
  if (failure) {
    return Error{Errc::io_error,
                 fmt::format("cannot create the folder '{}': {}", path, failure.message())};
  }
  return make_private_folder(path);
}

/// A file of a broker in the shard folder at `path`, besides the marks; empty if there is none.
std::string something_in(const std::filesystem::path& path) {
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entries(path, failure);
  for (; !failure && entries != std::filesystem::recursive_directory_iterator{};
       entries.increment(failure)) {
    const bool mark = entries->path().stem() == kShardMark;
    if (!mark && !entries->is_directory(failure)) return entries->path().string();
  }
  return {};
}

/// Whether the file says nothing about data: files that are written before FORMAT, and the file
/// system's own.
bool is_ours_or_the_systems(std::string_view name) {
  return name == "LOCK" || name == "FORMAT.new" || name.starts_with("TOKEN-KEY") ||
         name == "lost+found";
}

/// A folder without FORMAT must be empty, except for what an interrupted creation leaves.
Status check_empty(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::exists(path + "/FORMAT", failure)) return {};
  std::filesystem::directory_iterator entries(path, failure);
  for (; !failure && entries != std::filesystem::directory_iterator{}; entries.increment(failure)) {
    const std::string name = entries->path().filename().string();
    if (is_ours_or_the_systems(name)) continue;
    const bool shard = name.starts_with("shard-");
    if (!shard) {
      return Error{Errc::failed_precondition,
                   fmt::format("'{}' is not a data folder of baton, and not empty: it holds '{}'; "
                               "choose an empty folder, or one that a broker made",
                               path, name)};
    }
    if (const std::string file = something_in(entries->path()); !file.empty()) {
      return Error{Errc::store_corrupt,
                   fmt::format("'{}/FORMAT' is missing, but '{}' is there: restore FORMAT from a "
                               "copy of the data folder",
                               path, file)};
    }
  }
  if (failure) {
    return Error{Errc::io_error,
                 fmt::format("cannot list the folder '{}': {}", path, failure.message())};
  }
  return {};
}

/// Marks every shard, and only then gives the folder its id: until then it has none.
Status mark_all(const std::string& path, Format& format) {
  format.id = draw_folder_id();
  for (std::size_t shard = 0; shard < format.shards; ++shard) {
    BATON_TRY_STATUS(mark_shard(path, format.id, shard));
  }
  return write_format(path, format);
}

/// Marks a folder that was made before there were marks; if there is no room for that, at the next
/// start.
Status check_marks(const std::string& path, Format& format) {
  if (format.id.empty()) {
    const Status marked = mark_all(path, format);
    return marked.has_value() || marked.error().code == Errc::disk_full ? Status{} : marked;
  }
  for (std::size_t shard = 0; shard < format.shards; ++shard) {
    BATON_TRY_STATUS(check_shard_marks(path, format.id, shard));
  }
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
  lock_fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return io_error("open", file);
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return io_error("lock", file);
  return Error{
      Errc::folder_in_use,
      fmt::format("the data folder '{}' is in use by another broker (it holds '{}')", path, file)};
}

Result<std::size_t> DataFolder::shards_of(const std::string& path) {
  BATON_TRY(const Format format, read_format(path));
  return format.shards;
}

Result<DataFolder> DataFolder::open(const std::string& path, std::size_t shards,
                                    const std::string& cluster) {
  if (shards == 0 || shards > kShardsMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("shards is {}; it may be 1 to {}", shards, kShardsMax)};
  }
  BATON_TRY_STATUS(make_folder(path));
  // Before anything is written into the folder.
  BATON_TRY_STATUS(check_empty(path));
  DataFolder folder;
  BATON_TRY_STATUS(folder.lock(path));
  Result<Format> format = read_format(path);
  if (!format.has_value() && format.error().code == Errc::not_found) {
    format = Format{.shards = shards, .id = {}, .cluster = cluster};
    BATON_TRY_STATUS(mark_all(path, *format));
  } else if (!format.has_value()) {
    return std::move(format).error();
  } else {
    BATON_TRY_STATUS(check_cluster(path, *format, cluster));
    BATON_TRY_STATUS(check_marks(path, *format));
    if (format->number < kStoreFormat) BATON_TRY_STATUS(raise_format(path, *format));
  }
  folder.shards_ = format->shards;
  return folder;
}

}  // namespace baton
