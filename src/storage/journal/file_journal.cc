#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/journal/journal.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/journal_opening.h"
#include "storage/journal/segment.h"
#include "storage/journal/segment_scan.h"

namespace baton {
namespace {

// One segment for the next rounds, and one kept for what must be written even on a full disk.
constexpr std::size_t kPreparedSegments = 2;
constexpr std::uint64_t kSegmentBytesMin = 2 * kSegmentHeaderBytes;
constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{4} << 30U;
constexpr std::uint64_t kSegmentBytesStep = 4096;
constexpr std::uint64_t kZerosBytes = std::uint64_t{1} << 20U;

/// A journal in the files of one folder.
///
/// Threads: `mutex_` guards the members below it and is never held during input or output, so that
/// append() never waits for the disk. `sync_mutex_` and `prepare_mutex_` keep two calls of the same
/// kind apart. append() alone uses `buffer_` and changes the last segment.
///
/// Invariant: segments_ chain without gaps up to next_; every round before durable_ survives a
/// crash.
class FileJournal final : public Journal {
 public:
  FileJournal(Disk& disk, std::string folder, JournalOptions options, OpenedJournal opened)
      : disk_(disk),
        folder_(std::move(folder)),
        options_(options),
        opened_end_(opened.next),
        segments_(opened.segments.begin(), opened.segments.end()),
        spares_(opened.spares.begin(), opened.spares.end()),
        next_(opened.next),
        durable_(opened.next),
        spare_number_(opened.spare_number) {}

  std::uint64_t round_bytes_max() const override {
    return options_.segment_bytes - kSegmentHeaderBytes - kRoundHeaderBytes;
  }
  Position first() const override;
  Position next() const override {
    const std::scoped_lock lock(mutex_);
    return next_;
  }
  Status append(Position expected, Instant now, std::string_view facts) override;
  Result<Position> sync() override;
  Status prepare() override;
  Room room() const override;
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override;
  Status trim(Position before) override;
  std::uint64_t bytes_since(Position from) const override;

  /// Deletes spare segments of former runs beyond the number that this run wants.
  Status remove_surplus_spares();

 private:
  /// A segment file made ready for its next life: allocated, without a header, and durable.
  struct Prepared {
    std::string name;
    std::unique_ptr<File> file;
  };
  /// Where append() writes its round.
  struct Target {
    std::shared_ptr<Segment> segment;
    bool is_new;
    Position durable;
  };

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] Status failure() const;
  Status fail(Error error);

  Result<Target> choose_target(Position expected, std::uint64_t facts_bytes);
  Status write(const Target& target, const Round& round);
  [[nodiscard]] Position first_locked() const {
    return segments_.empty() ? next_ : segments_.front()->header.first;
  }
  Result<std::shared_ptr<Segment>> begin_segment(Prepared prepared, Position first);

  [[nodiscard]] Status check_free_bytes() const;
  std::optional<std::string> take_spare();
  std::string new_spare_name();
  Result<std::optional<Prepared>> prepare_spare(const std::string& name);
  Result<Prepared> prepare_new();
  Status fill(const std::string& name, File& file) const;

  std::shared_ptr<Segment> take_trimmed(Position before);
  Status recycle(const std::string& name);
  Status read_segment(const Segment& segment, Position from,
                      const std::function<Status(const Round&)>& visit) const;

  Disk& disk_;
  const std::string folder_;
  const JournalOptions options_;
  const Position opened_end_;
  std::string buffer_;  // Reused: one round, encoded.
  std::mutex sync_mutex_;
  std::mutex prepare_mutex_;

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Segment>> segments_;  // The last one is being written.
  std::deque<Prepared> prepared_;
  std::deque<std::string> spares_;
  std::vector<std::shared_ptr<Segment>> unsynced_;  // Each segment once.
  Position next_;
  Position durable_;
  std::uint64_t spare_number_;
  std::optional<Error> failure_;
};

Status FileJournal::failure() const {
  const std::scoped_lock lock(mutex_);
  if (failure_) return Error{failure_->code, "the journal failed before: " + failure_->text};
  return {};
}

// After a failed write or sync the disk's content is unknown: nothing more may be confirmed.
Status FileJournal::fail(Error error) {
  // Not disk_full: a caller would take that for a failure that changed nothing.
  if (error.code == Errc::disk_full) error.code = Errc::io_error;
  const std::scoped_lock lock(mutex_);
  failure_ = error;
  return error;
}

Status FileJournal::append(Position expected, Instant now, std::string_view facts) {
  if (facts.size() > round_bytes_max()) {
    return Error{Errc::invalid_argument, fmt::format("a round of {} bytes; the limit is {} bytes",
                                                     facts.size(), round_bytes_max())};
  }
  BATON_TRY_STATUS(failure());
  BATON_TRY(const Target target, choose_target(expected, facts.size()));
  Status written = write(target, {.position = expected, .now = now, .facts = facts});
  if (!written) return fail(std::move(written).error());

  const std::scoped_lock lock(mutex_);
  BATON_ASSERT(next_ == expected && target.segment->end == expected);
  if (target.is_new) segments_.push_back(target.segment);
  target.segment->add_round(round_bytes(facts.size()));
  BATON_ASSERT(target.segment->used <= target.segment->header.bytes);
  ++next_.value;
  if (unsynced_.empty() || unsynced_.back() != target.segment) unsynced_.push_back(target.segment);
  return {};
}

Result<FileJournal::Target> FileJournal::choose_target(Position expected,
                                                       std::uint64_t facts_bytes) {
  Prepared prepared;
  Position durable;
  {
    const std::scoped_lock lock(mutex_);
    if (expected != next_) {
      return Error{Errc::position_taken, fmt::format("expected position {}, but the next one is {}",
                                                     expected.value, next_.value)};
    }
    durable = durable_;
    if (!segments_.empty() && round_bytes(facts_bytes) <= segments_.back()->bytes_free()) {
      return Target{segments_.back(), false, durable};
    }
    if (prepared_.empty()) {
      return Error{Errc::journal_full, fmt::format("no segment is prepared in {}", folder_)};
    }
    prepared = std::move(prepared_.front());
    prepared_.pop_front();
  }
  auto segment = begin_segment(std::move(prepared), expected);
  if (!segment) return fail(std::move(segment).error()).error();
  return Target{*std::move(segment), true, durable};
}

// The segment's name becomes durable with the next sync(), as its header and first round do. Only
// the name of the journal's very first segment must be durable before any other: a segment without
// predecessors would look like the beginning of a trimmed journal.
Result<std::shared_ptr<Segment>> FileJournal::begin_segment(Prepared prepared, Position first) {
  const bool is_first_segment = first == Position{1};
  BATON_TRY(const std::uint64_t id, disk_.random_number());
  const std::string name = segment_name(first);
  BATON_TRY_STATUS(disk_.rename(path(prepared.name), path(name)));
  if (is_first_segment) BATON_TRY_STATUS(disk_.sync_folder(folder_));
  return std::make_shared<Segment>(
      Segment{.name = name,
              .file = std::move(prepared.file),
              .header = {.id = SegmentId{id}, .first = first, .bytes = options_.segment_bytes},
              .end = first,
              .used = kSegmentHeaderBytes,
              .marks = {}});
}

Status FileJournal::write(const Target& target, const Round& round) {
  const Segment& segment = *target.segment;
  buffer_.clear();
  if (target.is_new) encode_segment_header(segment.header, buffer_);
  encode_round(segment.header.id, round, target.durable, buffer_);
  return segment.file->write_at(target.is_new ? 0 : segment.used, buffer_);
}

Result<Position> FileJournal::sync() {
  const std::scoped_lock one_at_a_time(sync_mutex_);
  BATON_TRY_STATUS(failure());
  std::vector<std::shared_ptr<Segment>> segments;
  Position end;
  bool names_changed = false;
  {
    const std::scoped_lock lock(mutex_);
    segments.swap(unsynced_);
    end = next_;
    for (const auto& segment : segments) names_changed |= !segment->established;
  }
  for (const auto& segment : segments) {
    Status synced = segment->file->sync();
    if (!synced) return fail(std::move(synced).error()).error();
  }
  if (names_changed) {
    Status synced = disk_.sync_folder(folder_);
    if (!synced && synced.error().code == Errc::resource_exhausted) {
      const std::scoped_lock lock(mutex_);
      if (!unsynced_.empty() && unsynced_.front() == segments.back()) segments.pop_back();
      unsynced_.insert(unsynced_.begin(), segments.begin(), segments.end());
      return std::move(synced).error();
    }
    if (!synced) return fail(std::move(synced).error()).error();
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& segment : segments) segment->established = true;
  BATON_ASSERT(durable_ <= end);
  durable_ = end;
  return durable_;
}

Journal::Room FileJournal::room() const {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t free = segments_.empty() ? 0 : segments_.back()->bytes_free();
  const std::uint64_t rest = free > kRoundHeaderBytes ? free - kRoundHeaderBytes : 0;
  const std::uint64_t count = prepared_.size();
  // With nothing prepared, the segment being written is the reserve itself.
  return {.additions = count == 0 ? 0 : rest + (count - 1) * round_bytes_max(),
          .everything = rest + count * round_bytes_max()};
}

Status FileJournal::prepare() {
  const std::scoped_lock one_at_a_time(prepare_mutex_);
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      if (prepared_.size() >= kPreparedSegments) return {};
    }
    std::optional<Prepared> prepared;
    BATON_TRY_STATUS(check_free_bytes());
    if (const auto name = take_spare()) {
      auto ready = prepare_spare(*name);
      if (!ready) {
        const std::scoped_lock lock(mutex_);
        spares_.push_front(*name);
        return std::move(ready).error();
      }
      prepared = *std::move(ready);
    } else {
      BATON_TRY(prepared, prepare_new());
    }
    if (!prepared) continue;
    const std::scoped_lock lock(mutex_);
    prepared_.push_back(*std::move(prepared));
  }
}

// The first prepared segment is the reserve for acks and deletes, and may use the last free bytes.
Status FileJournal::check_free_bytes() const {
  std::uint64_t wanted = options_.leave_free_bytes;
  {
    const std::scoped_lock lock(mutex_);
    if (prepared_.empty() || wanted == 0) return {};
    if (spares_.empty()) wanted += options_.segment_bytes;
  }
  BATON_TRY(const std::uint64_t free, disk_.free_bytes(folder_));
  if (free >= wanted) return {};
  return Error{Errc::disk_full,
               fmt::format("the disk of {} has {} MiB left, and {} MiB are kept for checkpoints",
                           folder_, free >> 20U, options_.leave_free_bytes >> 20U)};
}

std::optional<std::string> FileJournal::take_spare() {
  const std::scoped_lock lock(mutex_);
  if (spares_.empty()) return std::nullopt;
  std::string name = std::move(spares_.front());
  spares_.pop_front();
  return name;
}

std::string FileJournal::new_spare_name() {
  const std::scoped_lock lock(mutex_);
  return spare_name(spare_number_++, kSpareSuffix);
}

// The old header is erased before the file can get a new name: otherwise a crash that kept the name
// but not the new header would bring the rounds of the former life back.
Result<std::optional<FileJournal::Prepared>> FileJournal::prepare_spare(const std::string& name) {
  BATON_TRY(std::unique_ptr<File> file, disk_.open(path(name)));
  BATON_TRY(const std::uint64_t size, file->size());
  if (size != options_.segment_bytes) {
    BATON_TRY_STATUS(disk_.remove(path(name)));
    return std::optional<Prepared>{};
  }
  BATON_TRY_STATUS(file->write_at(0, std::string(kSegmentHeaderBytes, '\0')));
  BATON_TRY_STATUS(file->sync());
  return std::optional<Prepared>(Prepared{name, std::move(file)});
}

Result<FileJournal::Prepared> FileJournal::prepare_new() {
  const std::string name = new_spare_name();
  const std::string unfinished =
      name.substr(0, name.size() - kSpareSuffix.size()) + std::string(kUnfinishedSuffix);
  BATON_TRY(std::unique_ptr<File> file, disk_.create(path(unfinished)));
  Status filled = fill(unfinished, *file);
  if (!filled) {
    // A half-made segment would keep the disk full without any use.
    BATON_TRY_STATUS(disk_.remove(path(unfinished)));
    return std::move(filled).error();
  }
  BATON_TRY_STATUS(disk_.rename(path(unfinished), path(name)));
  BATON_TRY_STATUS(disk_.sync_folder(folder_));
  return Prepared{name, std::move(file)};
}

// Writes zeros instead of only reserving the space: in blocks that were never written, each sync of
// a round would also have to make the file system's metadata durable.
Status FileJournal::fill(const std::string& name, File& file) const {
  BATON_TRY_STATUS(file.allocate(options_.segment_bytes));
  const std::string zeros(std::min(kZerosBytes, options_.segment_bytes), '\0');
  for (std::uint64_t at = 0; at < options_.segment_bytes; at += zeros.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(zeros.size(), options_.segment_bytes - at);
    BATON_TRY_STATUS(file.write_at(at, std::string_view(zeros).substr(0, count)));
    // In pieces: one sync of the whole file would hold up the syncs of rounds behind it.
    BATON_TRY_STATUS(file.sync());
  }
  BATON_TRY(const std::uint64_t size, file.size());
  if (size != options_.segment_bytes) {
    return Error{Errc::io_error, fmt::format("{} is {} bytes long after allocating {}", path(name),
                                             size, options_.segment_bytes)};
  }
  return {};
}

// Removes the oldest first, each one durably: a crash between two removals must not leave a gap.
Status FileJournal::trim(Position before) {
  while (const auto segment = take_trimmed(before)) {
    BATON_TRY_STATUS(recycle(segment->name));
  }
  return {};
}

std::shared_ptr<Segment> FileJournal::take_trimmed(Position before) {
  const std::scoped_lock lock(mutex_);
  if (segments_.size() < 2 || !segments_[1]->established) return nullptr;
  if (segments_.front()->end > before) return nullptr;
  // The sync that made the successor durable covered every round before it.
  BATON_ASSERT(segments_.front()->end <= durable_);
  auto segment = std::move(segments_.front());
  segments_.pop_front();
  return segment;
}

Status FileJournal::recycle(const std::string& name) {
  bool wanted = false;
  {
    const std::scoped_lock lock(mutex_);
    wanted = spares_.size() < options_.spares_max;
  }
  if (!wanted) {
    BATON_TRY_STATUS(disk_.remove(path(name)));
    return disk_.sync_folder(folder_);
  }
  std::string spare = new_spare_name();
  BATON_TRY_STATUS(disk_.rename(path(name), path(spare)));
  BATON_TRY_STATUS(disk_.sync_folder(folder_));
  const std::scoped_lock lock(mutex_);
  spares_.push_back(std::move(spare));
  return {};
}

Status FileJournal::remove_surplus_spares() {
  while (spares_.size() > options_.spares_max + kPreparedSegments) {
    BATON_TRY_STATUS(disk_.remove(path(spares_.back())));
    spares_.pop_back();
  }
  return {};
}

Status FileJournal::read(Position from, const std::function<Status(const Round&)>& visit) const {
  std::vector<std::shared_ptr<Segment>> segments;
  {
    const std::scoped_lock lock(mutex_);
    const Position first = first_locked();
    if (from < first || from > next_) {
      return Error{Errc::round_not_found,
                   fmt::format("position {}; the journal in {} holds {} up to, not including, {}",
                               from.value, folder_, first.value, next_.value)};
    }
    for (const auto& segment : segments_) {
      const bool wanted = segment->end > from && segment->header.first < opened_end_;
      if (wanted) segments.push_back(segment);
    }
  }
  for (const auto& segment : segments) BATON_TRY_STATUS(read_segment(*segment, from, visit));
  return {};
}

Status FileJournal::read_segment(const Segment& segment, Position from,
                                 const std::function<Status(const Round&)>& visit) const {
  BATON_TRY(const std::string bytes, segment.file->read_at(0, segment.header.bytes));
  SegmentReader reader(bytes, segment.header);
  Position end;
  {
    const std::scoped_lock lock(mutex_);
    end = std::min(segment.end, opened_end_);
  }
  while (reader.position() < end) {
    const auto found = reader.next();
    if (!found) {
      return Error{Errc::journal_corrupt,
                   fmt::format("{} at offset {}: round {} was there when the journal was opened",
                               path(segment.name), reader.offset(), reader.position().value)};
    }
    if (found->round.position >= from) BATON_TRY_STATUS(visit(found->round));
  }
  return {};
}

Position FileJournal::first() const {
  const std::scoped_lock lock(mutex_);
  return first_locked();
}

std::uint64_t FileJournal::bytes_since(Position from) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& segment : segments_) bytes += segment->bytes_since(from);
  return bytes;
}

Status check_options(const JournalOptions& options) {
  const std::uint64_t bytes = options.segment_bytes;
  if (bytes < kSegmentBytesMin || bytes > kSegmentBytesMax || bytes % kSegmentBytesStep != 0) {
    return Error{
        Errc::invalid_argument,
        fmt::format("a journal segment of {} bytes; it must be a multiple of {} from {} to {}",
                    bytes, kSegmentBytesStep, kSegmentBytesMin, kSegmentBytesMax)};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Journal>> open_file_journal(Disk& disk, std::string folder,
                                                   JournalOptions options) {
  BATON_TRY_STATUS(check_options(options));
  BATON_TRY(OpenedJournal opened, open_journal_folder(disk, folder));
  auto journal = std::make_unique<FileJournal>(disk, std::move(folder), options, std::move(opened));
  BATON_TRY_STATUS(journal->remove_surplus_spares());
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace baton
