#include "storage/rocks/store_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kOptionsBytes = std::uint64_t{1} << 20U;

Error folder_error(std::string_view doing, const std::string& path, std::error_code failed) {
  const Errc code = failed == std::errc::no_space_on_device ? Errc::disk_full : Errc::io_error;
  return {code, fmt::format("{} {}: {} (check that the path is right and that this user may read "
                            "and write it)",
                            doing, path, failed.message())};
}

Status sync_folder(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return folder_error("opening the folder", path, {errno, std::generic_category()});
  const int result = ::fsync(file);
  const std::error_code failed{errno, std::generic_category()};
  ::close(file);
  if (result != 0) return folder_error("syncing the folder", path, failed);
  return {};
}

}  // namespace

Status make_store_folder(const std::string& folder) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const fs::file_status found = fs::status(path, failed);
  if (fs::is_directory(found)) return {};
  if (fs::exists(found)) {
    return Error{Errc::io_error, fmt::format("{} is not a folder (move it away, or configure "
                                             "another data folder)",
                                             folder)};
  }
  std::vector<fs::path> made;
  for (fs::path up = path; up.has_relative_path() && !fs::exists(up, failed); up = up.parent_path())
    made.push_back(up);
  failed.clear();
  fs::create_directories(path, failed);
  if (failed) return folder_error("making the folder", folder, failed);
  // A folder is an entry of its parent: without this, a power loss could remove the whole store.
  for (const fs::path& each : made) BATON_TRY_STATUS(sync_folder(each.parent_path().string()));
  return {};
}

Result<bool> store_folder_is_used(const std::string& folder) {
  std::error_code failed;
  if (fs::exists(fs::path(folder) / "CURRENT", failed)) return true;
  fs::directory_iterator entries(folder, failed);
  if (failed) return folder_error("reading the folder", folder, failed);
  while (entries != fs::directory_iterator{}) {
    if (entries->path().extension() == ".sst") {
      return Error{
          Errc::store_corrupt,
          fmt::format("{} is missing, but {} is there (restore the data folder from a copy)",
                      (fs::path(folder) / "CURRENT").string(), entries->path().string())};
    }
    entries.increment(failed);
    if (failed) return folder_error("reading the folder", folder, failed);
  }
  return false;
}

std::uint64_t opening_bytes(const std::string& folder) {
  std::uint64_t list_bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator{};
       at.increment(failed)) {
    if (!at->path().filename().string().starts_with("MANIFEST-")) continue;
    std::error_code gone;
    const std::uintmax_t bytes = at->file_size(gone);
    if (!gone) list_bytes = std::max<std::uint64_t>(list_bytes, bytes);
  }
  return list_bytes + kOptionsBytes;
}

Status check_store_folder_unlocked(const std::string& folder) {
  const int file = ::open((folder + "/LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const int result = ::fcntl(file, F_GETLK, &lock);
  ::close(file);
  if (result == 0 && lock.l_type != F_UNLCK) {
    return Error{Errc::folder_in_use, fmt::format("process {} has the store in {} open (stop it "
                                                  "first)",
                                                  lock.l_pid, folder)};
  }
  return {};
}

}  // namespace baton
