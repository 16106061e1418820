#include "server/shard/owner_only.h"

#include <filesystem>

namespace baton {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;

void tighten(const fs::path& path, fs::file_status status, Tightened& all) {
  if (status.type() != fs::file_type::directory && status.type() != fs::file_type::regular) return;
  if ((status.permissions() & kOthers) == fs::perms::none) return;
  std::error_code failed;
  fs::permissions(path, kOthers, fs::perm_options::remove, failed);
  ++(failed ? all.failed : all.changed);
}

}  // namespace

Tightened make_owner_only(const std::string& folder) {
  Tightened all;
  std::error_code failed;
  tighten(folder, fs::status(folder, failed), all);
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           failed);
  for (; !failed && entries != fs::recursive_directory_iterator{}; entries.increment(failed)) {
    std::error_code gone;
    tighten(entries->path(), entries->symlink_status(gone), all);
  }
  return all;
}

}  // namespace baton
