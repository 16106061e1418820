#include "server/shard/shard_marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr std::size_t kFormat = 1;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kFolderMode = 0700;
/// The shard's own folder, and the folders in it.
constexpr std::array<const char*, 4> kParts = {"", "/journal", "/checkpoint", "/streams"};

Error io_error(std::string_view what, const std::string& path) {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::disk_full : Errc::io_error;
  return {code, fmt::format("cannot {} '{}': {}", what, path, std::strerror(errno))};
}

Status sync_folder(const std::string& folder) {
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return io_error("open", folder);
  const bool synced = ::fsync(directory) == 0;
  ::close(directory);
  if (!synced) return io_error("sync", folder);
  return {};
}

std::string folder_of(const std::string& path, std::size_t number, const char* part) {
  return fmt::format("{}/shard-{}{}", path, number, part);
}

struct Mark {
  std::string folder_id;
  std::size_t shard = 0;
};

Result<Mark> read_mark(const std::string& folder) {
  const std::string file = folder + "/" + kShardMark;
  std::ifstream in(file);
  if (!in.is_open()) {
    return Error{
        Errc::store_corrupt,
        fmt::format("'{}' is missing: '{}' cannot be told from the folder of another shard; "
                    "restore it from a copy of the data folder",
                    file, folder)};
  }
  std::string name;
  std::size_t format = 0;
  std::string folder_word;
  std::string shard_word;
  Mark mark;
  in >> name >> format >> folder_word >> mark.folder_id >> shard_word >> mark.shard;
  if (name == "baton-shard" && format > kFormat) {
    return Error{
        Errc::store_too_new,
        fmt::format("'{}' says format {}; this version knows {}: run the newer version of baton",
                    file, format, kFormat)};
  }
  if (in.fail() || name != "baton-shard" || folder_word != "folder" || shard_word != "shard") {
    return Error{
        Errc::store_corrupt,
        fmt::format("'{}' cannot be understood; restore it from a copy of the data folder", file)};
  }
  return mark;
}

}  // namespace

std::string draw_folder_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0) return {};
  const int number = errno;
  struct stat status{};
  if (number == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
  errno = number;
  return io_error("create the folder", path);
}

Status write_small_file(const std::string& folder, const std::string& name,
                        const std::string& text) {
  const std::string path = folder + "/" + name;
  const std::string draft = path + ".new";
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode);
  if (file < 0) return io_error("make", draft);
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  const int number = errno;
  ::close(file);
  errno = number;
  if (!written || ::rename(draft.c_str(), path.c_str()) != 0) return io_error("write", path);
  return sync_folder(folder);
}

Status mark_shard(const std::string& path, const std::string& folder_id, std::size_t number) {
  for (const char* part : kParts) {
    const std::string folder = folder_of(path, number, part);
    BATON_TRY_STATUS(make_private_folder(folder));
    BATON_TRY_STATUS(write_small_file(
        folder, kShardMark,
        fmt::format("baton-shard {}\nfolder {}\nshard {}\n", kFormat, folder_id, number)));
  }
  return sync_folder(folder_of(path, number, ""));
}

Status check_shard_marks(const std::string& path, const std::string& folder_id,
                         std::size_t number) {
  for (const char* part : kParts) {
    const std::string folder = folder_of(path, number, part);
    BATON_TRY(const Mark mark, read_mark(folder));
    if (mark.folder_id != folder_id) {
      return Error{Errc::store_corrupt,
                   fmt::format("'{}' belongs to another data folder (id {}, this one has {}); put "
                               "back the one that was here",
                               folder, mark.folder_id, folder_id)};
    }
    if (mark.shard != number) {
      return Error{Errc::store_corrupt,
                   fmt::format("'{}' belongs to shard {}, not to shard {}; put each folder back to "
                               "its shard",
                               folder, mark.shard, number)};
    }
  }
  return {};
}

}  // namespace baton
