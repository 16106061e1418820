#include "storage/rocks/rocks_status.h"

#include <fmt/format.h>
#include <rocksdb/status.h>

namespace baton {
namespace {

struct Verdict {
  Errc code;
  std::string_view advice;
};

// RocksDB has no code for a lock that is taken, only these words (another process; this process). A
// test fails if they change.
bool is_lock_taken(const rocksdb::Status& status, std::string_view text) {
  return status.IsIOError() &&
         (text.find("While lock file") != std::string_view::npos ||
          text.find("lock hold by current process") != std::string_view::npos);
}

Verdict judge(const rocksdb::Status& status, std::string_view text) {
  if (status.IsNoSpace()) {
    return {Errc::disk_full, "free space on this disk"};
  }
  if (is_lock_taken(status, text)) {
    return {Errc::folder_in_use, "stop the other process, or configure another data folder"};
  }
  // A missing file is damage as well: RocksDB only asks for files it has itself recorded.
  if (status.IsCorruption() || status.IsPathNotFound() || status.IsNotFound()) {
    return {Errc::store_corrupt, "restore the data folder from a copy; do not delete single files"};
  }
  if (status.IsIOError()) {
    return {Errc::io_error, "check the disk and that this user may read and write the folder"};
  }
  return {Errc::internal, "this is a bug: please report it with the LOG file of the folder"};
}

}  // namespace

Error rocks_error(const rocksdb::Status& status, std::string_view doing,
                  const std::string& folder) {
  const std::string text = status.ToString();
  const Verdict verdict = judge(status, text);
  return {verdict.code,
          fmt::format("{} the store in {}: {} ({})", doing, folder, text, verdict.advice)};
}

}  // namespace baton
