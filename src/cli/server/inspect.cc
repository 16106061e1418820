#include "cli/server/inspect.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/queue/rows.h"
#include "server/shard/data_folder.h"
#include "server/shard/local_broker.h"
#include "server/shard/machine_list.h"
#include "server/shard/shard_facts.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/segment_scan.h"
#include "storage/rocks/rocks_store.h"

namespace baton::cli {
namespace {

constexpr std::size_t kStateRows = 1024;

/// A shared lock of the folder: a broker takes an exclusive one.
class SharedLock {
 public:
  SharedLock() = default;
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() {
    if (fd_ >= 0) ::close(fd_);
  }

  Status take(const std::string& path) {
    const std::string file = path + "/LOCK";
    // A copy of a folder may lack the file, and may be read-only.
    fd_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0 && errno == ENOENT) return {};
    if (fd_ < 0) {
      return Error{Errc::io_error, fmt::format("cannot open '{}': {}", file, std::strerror(errno))};
    }
    if (::flock(fd_, LOCK_SH | LOCK_NB) == 0) return {};
    return Error{
        Errc::folder_in_use,
        fmt::format("a broker is running on '{}': ask it with 'baton store inspect --address "
                    "HOST:PORT', or stop it",
                    path)};
  }

 private:
  int fd_ = -1;
};

Error corrupt(const std::string& path, std::string_view why) {
  return {Errc::journal_corrupt, fmt::format("'{}': {}", path, why)};
}

/// Adds the rounds of one segment to `extent`. Returns whether the journal may continue after it.
Result<bool> add_segment(Disk& disk, const std::string& path, Position checkpoint,
                         JournalExtent& extent) {
  BATON_TRY(const std::unique_ptr<File> file, disk.open(path));
  BATON_TRY(const std::uint64_t size, file->size());
  BATON_TRY(const std::string bytes, file->read_at(0, size));
  if (bytes.size() < kSegmentHeaderBytes) return corrupt(path, "is too short for a segment");
  const std::string_view block = std::string_view(bytes).substr(0, kSegmentHeaderBytes);
  // The segment was prepared, and never used.
  if (is_unused_segment_header(block)) return false;
  const Result<SegmentHeader> header = decode_segment_header(block);
  if (!header)
    return Error{header.error().code, fmt::format("'{}': {}", path, header.error().text)};
  SegmentReader reader(bytes, *header);
  while (const auto found = reader.next()) {
    if (found->round.position >= checkpoint) extent.bytes += round_bytes(found->round.facts.size());
  }
  extent.next = reader.position();
  // What follows is a torn tail, unless a later round was written when it was durable already.
  const LaterRounds later = search_later_rounds(
      bytes, header->id, {.offset = reader.offset(), .position = reader.position()});
  if (later.durable > extent.next) {
    return corrupt(
        path, fmt::format("round {} at offset {} is damaged", extent.next.value, reader.offset()));
  }
  return true;
}

Result<ShardState> read_state(const CheckpointStore& store) {
  ShardState state;
  BATON_TRY(const std::vector<Row> rows, store.scan({.table = tables::kState,
                                                     .begin = {},
                                                     .end = std::string(64, '\xff'),
                                                     .rows_max = kStateRows,
                                                     .bytes_max = limits::kMiB}));
  for (const Row& row : rows) BATON_TRY_STATUS(read_shard_state(row, state));
  return state;
}

Result<ShardInspection> inspect_shard(Disk& disk, const std::string& path, std::size_t number) {
  ShardInspection inspection;
  BATON_TRY(const auto store,
            open_rocks_store_read_only(DataFolder::checkpoint_of(path, number), kShardTables));
  BATON_TRY(inspection.tables, inspect_tables(*store));
  BATON_TRY(const ShardState state, read_state(*store));
  inspection.format_version = static_cast<std::uint32_t>(state.format);
  inspection.checkpoint_position = state.position.value;
  inspection.boot = state.boot;
  BATON_TRY(const JournalExtent extent,
            inspect_journal(disk, DataFolder::journal_of(path, number), state.position));
  inspection.journal_first = extent.first.value;
  inspection.journal_next = extent.next.value;
  inspection.journal_durable = extent.next.value;
  inspection.journal_bytes = extent.bytes;
  return inspection;
}

}  // namespace

Result<JournalExtent> inspect_journal(Disk& disk, const std::string& folder, Position checkpoint) {
  BATON_TRY(const std::vector<std::string> names, disk.list(folder));
  JournalExtent extent{.first = checkpoint, .next = checkpoint};
  bool begun = false;
  for (const std::string& name : names) {
    const std::optional<Position> first = parse_segment_name(name);
    if (!first) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    if (begun && *first != extent.next) {
      return corrupt(path, fmt::format("begins with round {}, where round {} should follow",
                                       first->value, extent.next.value));
    }
    if (!begun) extent = {.first = *first, .next = *first};
    begun = true;
    BATON_TRY(const bool goes_on, add_segment(disk, path, checkpoint, extent));
    if (!goes_on) break;
  }
  return extent;
}

Result<std::vector<ShardInspection>> inspect_folder(const std::string& path) {
  BATON_TRY(const std::size_t shards, DataFolder::shards_of(path));
  SharedLock lock;
  BATON_TRY_STATUS(lock.take(path));
  const std::unique_ptr<Disk> disk = make_real_disk();
  std::vector<ShardInspection> inspections;
  for (std::size_t number = 0; number < shards; ++number) {
    BATON_TRY(ShardInspection inspection, inspect_shard(*disk, path, number));
    inspections.push_back(std::move(inspection));
  }
  return inspections;
}

Json to_json(const std::vector<ShardInspection>& shards) {
  Json out{{"shards", Json::array()}};
  std::uint32_t number = 0;
  for (const ShardInspection& shard : shards) {
    Json tables = Json::array();
    for (const TableInspection& table : shard.tables) {
      tables.push_back({{"name", table.name}, {"rows", table.rows}, {"bytes", table.bytes}});
    }
    out["shards"].push_back({{"number", number++},
                             {"boot", shard.boot},
                             {"format_version", shard.format_version},
                             {"tables", std::move(tables)},
                             {"checkpoint_position", shard.checkpoint_position},
                             {"journal_first", shard.journal_first},
                             {"journal_next", shard.journal_next},
                             {"journal_durable", shard.journal_durable},
                             {"journal_bytes", shard.journal_bytes}});
  }
  return out;
}

std::string describe(const std::vector<ShardInspection>& shards) {
  std::string out;
  std::uint32_t number = 0;
  for (const ShardInspection& shard : shards) {
    if (number > 0) out += "\n\n";
    out += fmt::format(
        "shard {}  (boot {}, format {})\n"
        "  checkpoint: everything before round {}\n"
        "  journal: from round {}, next is {}, durable before {}; {} after the checkpoint\n",
        number++, shard.boot, shard.format_version, shard.checkpoint_position, shard.journal_first,
        shard.journal_next, shard.journal_durable, format_bytes(shard.journal_bytes));
    std::vector<std::vector<std::string>> rows{{"  TABLE", "ROWS", "BYTES"}};
    for (const TableInspection& table : shard.tables) {
      rows.push_back({"  " + table.name, format_count(table.rows), format_bytes(table.bytes)});
    }
    out += format_table(rows);
  }
  return out;
}

}  // namespace baton::cli
