#include "storage/log/log_segment.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "storage/log/batch_walk.h"

namespace baton {
namespace {

// Beyond this many damages of one partition, further ones are not remembered.
constexpr std::size_t kDamagesMax = 100;
constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

/// For how many of the `count` entries, which are sorted, `before` is true.
template <class Entry, class Before>
Result<std::size_t> count_before(std::size_t count, Entry entry_at, Before before) {
  std::size_t first = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    BATON_TRY(const auto entry, entry_at(first + half));
    if (before(entry)) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

Result<std::string> read_entry(const File& file, std::size_t at, std::size_t bytes) {
  BATON_TRY(std::string entry, file.read_at(at * bytes, bytes));
  if (entry.size() != bytes) return Error{Errc::malformed, "an index is shorter than it was"};
  return entry;
}

}  // namespace

std::string log_file_name(Offset base, std::string_view suffix) {
  return fmt::format("{:020}{}", base.value, suffix);
}

std::optional<Offset> parse_log_file_name(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  std::int64_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec != std::errc{} || number < 0) return std::nullopt;
  if (name != log_file_name(Offset{number}, suffix)) return std::nullopt;
  return Offset{number};
}

Error LogSegment::damaged(std::uint64_t position, std::string_view why) const {
  return {Errc::malformed, fmt::format("{} at position {}: {}", parts_.path, position, why)};
}

std::size_t LogSegment::offset_entries() const {
  return parts_.memory ? parts_.memory->offsets.size() : parts_.files->offset_entries;
}

std::size_t LogSegment::time_entries() const {
  return parts_.memory ? parts_.memory->times.size() : parts_.files->time_entries;
}

Result<OffsetEntry> LogSegment::offset_entry(std::size_t at) const {
  if (parts_.memory) return parts_.memory->offsets[at];
  BATON_TRY(const std::string bytes, read_entry(*parts_.files->offsets, at, kOffsetEntryBytes));
  return decode_offset_entry(bytes.data());
}

Result<TimeEntry> LogSegment::time_entry(std::size_t at) const {
  if (parts_.memory) return parts_.memory->times[at];
  BATON_TRY(const std::string bytes, read_entry(*parts_.files->times, at, kTimeEntryBytes));
  return decode_time_entry(bytes.data());
}

// The entry of the last indexed batch that ends at `offset` or before it.
Result<std::optional<OffsetEntry>> LogSegment::entry_before(Offset offset) const {
  const std::int64_t relative = offset.value - base().value;
  BATON_TRY(const std::size_t count,
            count_before(
                offset_entries(), [&](std::size_t at) { return offset_entry(at); },
                [&](const OffsetEntry& entry) { return entry.last <= relative; }));
  if (count == 0) return std::optional<OffsetEntry>{};
  BATON_TRY(const OffsetEntry entry, offset_entry(count - 1));
  return std::optional(entry);
}

// No batch that ends at the offset returned, or before it, has a record of the time `at`. An entry
// counts only if the batch it names says the same: a damaged index must not skip records.
Result<Offset> LogSegment::offset_before(TimestampMs at) const {
  BATON_TRY(const std::size_t count,
            count_before(
                time_entries(), [&](std::size_t index) { return time_entry(index); },
                [&](const TimeEntry& entry) { return entry.greatest < at; }));
  if (count == 0) return base();
  BATON_TRY(const TimeEntry entry, time_entry(count - 1));
  const Offset last{base().value + entry.last};
  if (entry.last < 0 || entry.greatest >= at) return base();
  const auto named = find(last);
  const bool genuine =
      named && named->header.last_offset() == last && named->header.max_timestamp == entry.greatest;
  return genuine ? last : base();
}

Result<LogSegment::Found> LogSegment::find(Offset offset) const {
  const auto entry = entry_before(offset);
  if (entry && *entry) {
    auto found = find_from(*entry, offset);
    if (found) return found;
  }
  return find_from({}, offset);
}

// Searches from the batch that `entry` names, or from the first. The offsets of all batches from
// there on are compared with each other, because the checksum does not cover them.
Result<LogSegment::Found> LogSegment::find_from(const std::optional<OffsetEntry>& entry,
                                                Offset offset) const {
  const std::uint64_t position =
      entry ? static_cast<std::uint64_t>(std::max(entry->position, 0)) : 0;
  BatchWalk walk(file(),
                 {.position = position,
                  .offset = entry ? std::nullopt : std::optional(base()),
                  .size = kNoEnd},
                 BatchWalk::Depth::headers);
  bool first = entry.has_value();
  while (true) {
    BATON_TRY(const auto header, walk.next());
    if (!header) return damaged(walk.position(), walk.broken());
    const bool strange = first && header->last_offset().value != base().value + entry->last;
    if (strange || header->base_offset > offset) {
      return damaged(walk.batch_position(), fmt::format("base offset {} where {} should be",
                                                        header->base_offset.value, offset.value));
    }
    first = false;
    if (header->last_offset() >= offset) return Found{*header, walk.batch_position()};
  }
}

Result<std::optional<LogSegment::Found>> LogSegment::find_time(TimestampMs at, Offset limit) const {
  BATON_TRY(const Offset before, offset_before(at));
  if (before >= limit) return std::optional<Found>{};
  BATON_TRY(const Found start, find(before));
  // Reads whole batches: a damaged timestamp must not make the search skip records.
  BatchWalk walk(file(),
                 {.position = start.position, .offset = start.header.base_offset, .size = kNoEnd},
                 BatchWalk::Depth::whole);
  // Bytes beyond the limit may be half written.
  while (walk.offset() < limit) {
    BATON_TRY(const auto header, walk.next());
    if (!header) return damaged(walk.position(), walk.broken());
    if (!walk.crc_good()) return damaged(walk.batch_position(), kBadChecksum);
    if (header->max_timestamp >= at) return std::optional<Found>({*header, walk.batch_position()});
  }
  return std::optional<Found>{};
}

void FoundDamages::note(const std::string& text) {
  {
    const std::scoped_lock lock(mutex_);
    const bool known = std::ranges::find(texts_, text) != texts_.end();
    if (known || texts_.size() >= kDamagesMax) return;
    texts_.push_back(text);
  }
  if (told_ != nullptr) told_(text);
}

std::string FoundDamages::first() const {
  const std::scoped_lock lock(mutex_);
  return texts_.empty() ? std::string() : texts_.front();
}

}  // namespace baton
