#include "storage/log/log_opening.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "storage/log/batch_walk.h"

namespace baton {
namespace {

constexpr Offset kNobodyKnows{std::numeric_limits<std::int64_t>::max()};
constexpr std::array<std::string_view, 3> kCompanionSuffixes{kIndexSuffix, kTimeIndexSuffix,
                                                             kSnapshotSuffix};

std::string parent_of(const std::string& folder) {
  const auto slash = folder.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

/// A file that may be absent.
Result<std::unique_ptr<File>> open_if_there(Disk& disk, const std::string& path) {
  auto file = disk.open(path);
  if (!file && file.error().code == Errc::not_found) return std::unique_ptr<File>{};
  return file;
}

/// One opening of one folder. Segments before the last were synced when they were closed, so they
/// are only checked from where their indexes end; the last one is read whole.
class LogOpening {
 public:
  LogOpening(Disk& disk, const std::string& folder, const PartitionLog::Opening& opening)
      : disk_(disk), folder_(folder), opening_(opening) {}

  Result<OpenedLog> run() {
    BATON_TRY_STATUS(disk_.make_folder(folder_));
    BATON_TRY_STATUS(disk_.sync_folder(parent_of(folder_)));
    BATON_TRY_STATUS(find_segments());
    for (std::size_t i = 0; i + 1 < bases_.size(); ++i) BATON_TRY_STATUS(open_closed(i));
    BATON_TRY_STATUS(load_producers());
    return open_last();
  }

 private:
  /// A closed segment with good index files, which cover it up to the end of the log.
  struct Indexed {
    std::shared_ptr<const FileIndex> files;
    TimestampMs greatest;
    Offset end;
  };

  /// The end of the good batches of the last segment, and whether anything follows it.
  struct Tail {
    std::uint64_t position;
    Offset next;
    bool torn;
  };

  [[nodiscard]] std::string path(Offset base, std::string_view suffix) const {
    return folder_ + "/" + log_file_name(base, suffix);
  }
  void damage(Offset from, Offset until, std::string text) {
    damages_.push_back({from, until, std::move(text)});
  }
  [[nodiscard]] std::string at(Offset base, std::uint64_t position, std::string_view why) const {
    return fmt::format("{} at position {}: {}", path(base, kLogSuffix), position, why);
  }

  Status find_segments();
  Status open_closed(std::size_t i);
  Result<std::optional<Indexed>> check_index(Offset base, const File& file, std::uint64_t size);
  Result<std::optional<Indexed>> check_tail(Offset base, const File& file, std::uint64_t size,
                                            Indexed indexed);
  Result<Offset> index_again(LogSegment::Parts& parts, Offset until);
  Status load_producers();
  Result<std::optional<ProducerTable>> load_snapshot(Offset base);
  Status apply_producers(const LogSegment& segment);
  Result<OpenedLog> open_last();
  /// Reads the last segment.
  Result<Tail> scan_last(const File& file, IndexBuilder& builder);
  Status remove_strays();

  Disk& disk_;
  const std::string& folder_;
  const PartitionLog::Opening& opening_;
  std::vector<std::string> names_;
  std::vector<Offset> bases_;
  SegmentList segments_;
  std::vector<LogDamage> damages_;
  ProducerTable producers_;
};

Status LogOpening::find_segments() {
  BATON_TRY(names_, disk_.list(folder_));
  for (const std::string& name : names_) {
    if (!name.ends_with(kLogSuffix)) continue;
    const auto base = parse_log_file_name(name, kLogSuffix);
    if (!base) {
      return Error{Errc::malformed,
                   fmt::format("{}/{}: this is not the name of a segment", folder_, name)};
    }
    bases_.push_back(*base);
  }
  if (!bases_.empty()) return {};
  if (opening_.synced_end.value > 0) {
    return Error{Errc::malformed,
                 fmt::format("{} holds no segment, but records before offset {} were synced",
                             folder_, opening_.synced_end.value)};
  }
  BATON_TRY_STATUS(create_log_file(disk_, folder_, Offset{0}));
  bases_.emplace_back(0);
  return {};
}

Status LogOpening::open_closed(std::size_t i) {
  const Offset base = bases_[i];
  const Offset until = bases_[i + 1];
  LogSegment::Parts parts{.base = base, .path = path(base, kLogSuffix)};
  BATON_TRY(parts.file, disk_.open(parts.path));
  BATON_TRY(parts.bytes, parts.file->size());
  BATON_TRY(std::optional<Indexed> indexed, check_index(base, *parts.file, parts.bytes));
  if (indexed && indexed->end == until) {
    parts.files = std::move(indexed->files);
    parts.greatest = indexed->greatest;
  } else {
    BATON_TRY(const Offset end, index_again(parts, until));
    if (end != until) {
      damage(std::min(end, until), std::max(end, until),
             at(base, parts.bytes,
                fmt::format("the segment ends with offset {}, but the next one begins with {}",
                            end.value, until.value)));
    }
  }
  segments_.push_back(std::make_shared<const LogSegment>(std::move(parts)));
  return {};
}

// Missing, short and foreign indexes are treated alike: as absent.
Result<std::optional<LogOpening::Indexed>> LogOpening::check_index(Offset base, const File& file,
                                                                   std::uint64_t size) {
  auto files = std::make_shared<FileIndex>();
  BATON_TRY(files->offsets, open_if_there(disk_, path(base, kIndexSuffix)));
  BATON_TRY(files->times, open_if_there(disk_, path(base, kTimeIndexSuffix)));
  if (files->offsets == nullptr || files->times == nullptr) return std::optional<Indexed>{};
  BATON_TRY(const std::uint64_t offset_bytes, files->offsets->size());
  BATON_TRY(const std::uint64_t time_bytes, files->times->size());
  files->offset_entries = offset_bytes / kOffsetEntryBytes;
  files->time_entries = time_bytes / kTimeEntryBytes;
  const bool even = offset_bytes % kOffsetEntryBytes == 0 && time_bytes % kTimeEntryBytes == 0;
  if (!even || files->time_entries == 0) return std::optional<Indexed>{};
  BATON_TRY(const std::string last_time,
            files->times->read_at(time_bytes - kTimeEntryBytes, kTimeEntryBytes));
  const TimestampMs greatest = decode_time_entry(last_time.data()).greatest;
  return check_tail(base, file, size, {std::move(files), greatest, base});
}

// From the last entry on there must be whole batches up to the end of the file, too few of them for
// another entry, and none younger than the index says.
Result<std::optional<LogOpening::Indexed>> LogOpening::check_tail(Offset base, const File& file,
                                                                  std::uint64_t size,
                                                                  Indexed indexed) {
  OffsetEntry last;
  std::optional<Offset> start = base;
  const std::size_t entries = indexed.files->offset_entries;
  if (entries > 0) {
    BATON_TRY(const std::string bytes, indexed.files->offsets->read_at(
                                           (entries - 1) * kOffsetEntryBytes, kOffsetEntryBytes));
    last = decode_offset_entry(bytes.data());
    start.reset();
    if (last.position < 0 || static_cast<std::uint64_t>(last.position) >= size) {
      return std::optional<Indexed>{};
    }
  }
  BatchWalk walk(
      file, {.position = static_cast<std::uint64_t>(last.position), .offset = start, .size = size},
      BatchWalk::Depth::headers);
  std::uint64_t bytes_since_entry = 0;
  bool first = entries > 0;
  while (true) {
    BATON_TRY(const auto header, walk.next());
    if (!header) break;
    if (first && header->last_offset().value != base.value + last.last) {
      return std::optional<Indexed>{};
    }
    const bool entry_missing = bytes_since_entry > opening_.options.index_interval_bytes;
    if (entry_missing || header->max_timestamp > indexed.greatest) return std::optional<Indexed>{};
    bytes_since_entry += header->bytes;
    indexed.end = header->next_offset();
    first = false;
  }
  if (!walk.broken().empty()) return std::optional<Indexed>{};
  return std::optional<Indexed>(std::move(indexed));
}

// Reads all of a closed segment. If it is damaged, the index stays in memory, and no file changes.
Result<Offset> LogOpening::index_again(LogSegment::Parts& parts, Offset until) {
  const std::size_t damages_before = damages_.size();
  IndexBuilder builder(parts.base, opening_.options.index_interval_bytes);
  BatchWalk walk(*parts.file,
                 {.position = 0, .offset = parts.base, .size = parts.bytes, .base = parts.base},
                 BatchWalk::Depth::whole);
  while (true) {
    BATON_TRY(const auto header, walk.next());
    if (!header) break;
    builder.add(*header, walk.batch_position());
    if (walk.crc_good()) continue;
    damage(header->base_offset, header->next_offset(),
           at(parts.base, walk.batch_position(), kBadChecksum));
  }
  parts.greatest = builder.greatest();
  Offset end = walk.offset();
  if (!walk.broken().empty()) {
    damage(end, until, at(parts.base, walk.position(), walk.broken()));
    end = until;
  }
  if (damages_.size() != damages_before) {
    parts.memory = builder.index();
    return end;
  }
  BATON_TRY(parts.files, write_index_files(disk_, folder_, parts.base, builder));
  return end;
}

// Loads the newest readable snapshot, and the batches since; without a snapshot, all batches.
Status LogOpening::load_producers() {
  std::size_t first = 0;
  for (std::size_t i = bases_.size(); i > 0; --i) {
    BATON_TRY(auto table, load_snapshot(bases_[i - 1]));
    if (!table) continue;
    producers_ = *std::move(table);
    first = i - 1;
    break;
  }
  for (std::size_t i = first; i < segments_.size(); ++i) {
    BATON_TRY_STATUS(apply_producers(*segments_[i]));
  }
  return {};
}

Result<std::optional<ProducerTable>> LogOpening::load_snapshot(Offset base) {
  BATON_TRY(const auto file, open_if_there(disk_, path(base, kSnapshotSuffix)));
  if (file == nullptr) return std::optional<ProducerTable>{};
  BATON_TRY(const std::uint64_t size, file->size());
  BATON_TRY(const std::string bytes, file->read_at(0, size));
  auto snapshot = ProducerTable::decode_snapshot(bytes);
  if (!snapshot && snapshot.error().code == Errc::store_too_new) return snapshot.error();
  if (!snapshot || snapshot->next != base) return std::optional<ProducerTable>{};
  return std::optional<ProducerTable>(std::move(snapshot->table));
}

Status LogOpening::apply_producers(const LogSegment& segment) {
  BatchWalk walk(segment.file(),
                 {.position = 0, .offset = segment.base(), .size = segment.parts().bytes},
                 BatchWalk::Depth::headers);
  while (true) {
    BATON_TRY(const auto header, walk.next());
    if (!header) break;
    producers_.apply(*header, opening_.now);
  }
  const bool known = std::ranges::any_of(
      damages_, [&](const LogDamage& known_one) { return known_one.from == walk.offset(); });
  if (!walk.broken().empty() && !known) {
    damage(walk.offset(), kNobodyKnows, at(segment.base(), walk.position(), walk.broken()));
  }
  return {};
}

Result<OpenedLog> LogOpening::open_last() {
  const Offset base = bases_.back();
  LogSegment::Parts parts{.base = base, .path = path(base, kLogSuffix)};
  BATON_TRY(parts.file, disk_.open(parts.path));
  IndexBuilder builder(base, opening_.options.index_interval_bytes);
  BATON_TRY(const Tail tail, scan_last(*parts.file, builder));
  if (damages_.empty()) {
    if (tail.torn) BATON_TRY_STATUS(parts.file->truncate(tail.position));
    BATON_TRY_STATUS(parts.file->sync());
    BATON_TRY_STATUS(remove_strays());
    BATON_TRY_STATUS(disk_.sync_folder(folder_));
  }
  parts.memory = builder.index();
  segments_.push_back(std::make_shared<const LogSegment>(std::move(parts)));
  std::ranges::sort(damages_, {}, &LogDamage::from);
  return OpenedLog{.segments = std::move(segments_),
                   .damages = std::move(damages_),
                   .producers = std::move(producers_),
                   .builder = std::move(builder),
                   .position = tail.position,
                   .next = tail.next};
}

Result<LogOpening::Tail> LogOpening::scan_last(const File& file, IndexBuilder& builder) {
  const Offset base = bases_.back();
  const Offset synced = opening_.synced_end;
  BATON_TRY(const std::uint64_t size, file.size());
  BatchWalk walk(file, {.position = 0, .offset = base, .size = size, .base = base},
                 BatchWalk::Depth::whole);
  while (true) {
    BATON_TRY(const auto header, walk.next());
    if (!header) break;
    if (!walk.crc_good() && header->base_offset >= synced) {
      return Tail{walk.batch_position(), header->base_offset, true};
    }
    builder.add(*header, walk.batch_position());
    if (walk.crc_good()) {
      producers_.apply(*header, opening_.now);
    } else {
      damage(header->base_offset, header->next_offset(),
             at(base, walk.batch_position(), kBadChecksum));
    }
  }
  const Tail tail{walk.position(), walk.offset(), !walk.broken().empty()};
  if (tail.next < synced) {
    const std::string_view why = tail.torn ? std::string_view(walk.broken()) : "the file ends";
    damage(tail.next, kNobodyKnows,
           at(base, tail.position,
              fmt::format("{}; records from offset {} to {} were synced and are lost", why,
                          tail.next.value, synced.value)));
  }
  return tail;
}

// Removes files left by a crash in the middle of a roll or of a removal. An index of the last
// segment would be older than the segment.
Status LogOpening::remove_strays() {
  for (const std::string& name : names_) {
    for (const std::string_view suffix : kCompanionSuffixes) {
      const auto base = parse_log_file_name(name, suffix);
      if (!base || std::ranges::binary_search(bases_, *base)) continue;
      BATON_TRY_STATUS(disk_.remove(folder_ + "/" + name));
    }
  }
  return {};
}

}  // namespace

Result<OpenedLog> open_log_folder(Disk& disk, const std::string& folder,
                                  const PartitionLog::Opening& opening) {
  return LogOpening(disk, folder, opening).run();
}

Result<std::shared_ptr<File>> create_log_file(Disk& disk, const std::string& folder, Offset base) {
  BATON_TRY(std::shared_ptr<File> file,
            disk.create(folder + "/" + log_file_name(base, kLogSuffix)));
  BATON_TRY_STATUS(disk.sync_folder(folder));
  return file;
}

Status write_whole_file(Disk& disk, const std::string& path, std::string_view bytes) {
  BATON_TRY(const auto file, disk.create(path));
  BATON_TRY_STATUS(file->write_at(0, bytes));
  return file->sync();
}

Result<std::shared_ptr<const FileIndex>> write_index_files(Disk& disk, const std::string& folder,
                                                           Offset base,
                                                           const IndexBuilder& builder) {
  const std::string offsets_path = folder + "/" + log_file_name(base, kIndexSuffix);
  const std::string times_path = folder + "/" + log_file_name(base, kTimeIndexSuffix);
  const std::string offsets = encode_offsets(builder);
  const std::string times = encode_times(builder);
  BATON_TRY_STATUS(write_whole_file(disk, offsets_path, offsets));
  BATON_TRY_STATUS(write_whole_file(disk, times_path, times));
  auto files = std::make_shared<FileIndex>();
  BATON_TRY(files->offsets, disk.open(offsets_path));
  BATON_TRY(files->times, disk.open(times_path));
  files->offset_entries = offsets.size() / kOffsetEntryBytes;
  files->time_entries = times.size() / kTimeEntryBytes;
  return std::shared_ptr<const FileIndex>(std::move(files));
}

}  // namespace baton
