#include "server/shard/token_key.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "base/bytes.h"

namespace baton {
namespace {

Result<std::string> draw(Disk& disk) {
  std::string bytes;
  Encoder out(bytes);
  while (bytes.size() < SipKey{}.size()) {
    BATON_TRY(const std::uint64_t number, disk.random_number());
    out.fixed(number);
  }
  return bytes;
}

/// Writes under another name first, so that the file is complete or does not exist.
Status store(Disk& disk, const std::string& data, const std::string& bytes) {
  const std::string path = data + "/TOKEN-KEY";
  {
    BATON_TRY(const std::unique_ptr<File> file, disk.create(path + ".new"));
    BATON_TRY_STATUS(file->write_at(0, bytes));
    BATON_TRY_STATUS(file->sync());
  }
  BATON_TRY_STATUS(disk.rename(path + ".new", path));
  return disk.sync_folder(data);
}

/// Empty if there is no file.
Result<std::string> read(Disk& disk, const std::string& data) {
  Result<std::unique_ptr<File>> file = disk.open(data + "/TOKEN-KEY");
  if (!file.has_value() && file.error().code == Errc::not_found) return std::string{};
  if (!file.has_value()) return std::move(file).error();
  return (*file)->read_at(0, SipKey{}.size() + 1);
}

}  // namespace

Result<SipKey> open_token_key(Disk& disk, const std::string& data) {
  BATON_TRY(std::string bytes, read(disk, data));
  SipKey key{};
  if (bytes.size() != key.size()) {
    if (!bytes.empty()) {
      spdlog::warn(
          "'{}/TOKEN-KEY' does not have {} bytes: a new key is made, and earlier leases "
          "can no longer be acked",
          data, key.size());
    }
    BATON_TRY(bytes, draw(disk));
    const Status stored = store(disk, data, bytes);
    if (!stored.has_value() && stored.error().code != Errc::disk_full) return stored.error();
  }
  std::ranges::copy(bytes, key.begin());
  return key;
}

}  // namespace baton
