#include "cluster/node/log_mark.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace baton::cluster {
namespace {

// u32 "BTM1"   u32 CRC-32C of what follows   u64 position   u64 boot   u64 chain   u64 sequence
// u64 bytes
constexpr std::uint32_t kMarkMagic = 0x314d5442;
constexpr std::size_t kMarkBytes = 48;

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Status write_log_mark(Disk& disk, const std::string& path, const LogMark& mark) {
  std::string fields;
  Encoder inner(fields);
  inner.fixed(mark.place.state.position);
  inner.fixed(mark.place.state.boot);
  inner.fixed(mark.place.state.chain);
  inner.fixed(mark.place.sequence);
  inner.fixed(mark.bytes);
  std::string bytes;
  Encoder out(bytes);
  out.fixed(kMarkMagic);
  out.fixed(crc32c(fields));
  out.raw(fields);
  {
    BATON_TRY(const std::unique_ptr<File> file, disk.create(path + ".new"));
    BATON_TRY_STATUS(file->write_at(0, bytes));
    BATON_TRY_STATUS(file->sync());
  }
  BATON_TRY_STATUS(disk.rename(path + ".new", path));
  return disk.sync_folder(folder_of(path));
}

Result<std::optional<LogMark>> read_log_mark(Disk& disk, const std::string& path) {
  const Result<std::unique_ptr<File>> file = disk.open(path);
  if (!file.has_value() && file.error().code == Errc::not_found) return std::nullopt;
  if (!file.has_value()) return file.error();
  BATON_TRY(const std::string bytes, (*file)->read_at(0, kMarkBytes + 1));
  Decoder in(bytes);
  const auto magic = in.fixed<std::uint32_t>();
  const auto crc = in.fixed<std::uint32_t>();
  if (bytes.size() != kMarkBytes || magic != kMarkMagic ||
      crc32c(std::string_view(bytes).substr(8)) != crc) {
    return Error{Errc::store_corrupt,
                 fmt::format("'{}' is damaged: it says up to where this node has applied its "
                             "shard's log; empty the data folder to read the log from its "
                             "beginning",
                             path)};
  }
  LogMark mark;
  mark.place.state.position = in.fixed<std::uint64_t>();
  mark.place.state.boot = in.fixed<std::uint64_t>();
  mark.place.state.chain = in.fixed<std::uint64_t>();
  mark.place.sequence = in.fixed<std::uint64_t>();
  mark.bytes = in.fixed<std::uint64_t>();
  return mark;
}

}  // namespace baton::cluster
