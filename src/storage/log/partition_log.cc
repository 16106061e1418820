#include "storage/log/partition_log.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/log/log_opening.h"
#include "storage/log/log_segment.h"

namespace baton {
namespace {

constexpr std::int64_t kRelativeOffsetMax = std::numeric_limits<std::int32_t>::max();

Status check_options(const PartitionLogOptions& options) {
  const auto check = [](std::string_view name, std::uint64_t value, std::uint64_t min,
                        std::uint64_t max) -> Status {
    if (value >= min && value <= max) return {};
    return Error{Errc::invalid_argument,
                 fmt::format("{} is {}; it must be from {} to {}", name, value, min, max)};
  };
  BATON_TRY_STATUS(check("segment_bytes", options.segment_bytes, limits::kSegmentBytesMin,
                         limits::kSegmentBytesMax));
  return check("index_interval_bytes", options.index_interval_bytes, 1, limits::kSegmentBytesMax);
}

}  // namespace

/// The writing half. `mutex_` guards what sync() needs, and is never held during input or output.
class PartitionLog::Writer {
 public:
  Writer(Disk& disk, std::string folder, const Opening& opening, OpenedLog opened)
      : disk_(disk),
        folder_(std::move(folder)),
        options_(opening.options),
        shared_(std::make_shared<SharedLog>(opened.segments, opened.next, opened.damages,
                                            opening.damage_found)),
        segments_(std::move(opened.segments)),
        producers_(std::move(opened.producers)),
        builder_(std::move(opened.builder)),
        position_(opened.position),
        file_(segments_.back()->parts().file),
        next_(opened.next),
        synced_(opened.next) {}

  Result<std::vector<AppendOutcome>> append(std::span<const CheckedBatch> batches,
                                            LeaderEpoch leader_epoch, Instant now);
  Result<Offset> sync();
  void publish(Offset end);
  Result<std::vector<DroppedSegment>> drop_old_segments(Instant now);
  [[nodiscard]] PartitionDescription describe() const;
  [[nodiscard]] PartitionReader reader() const { return PartitionReader(shared_); }
  [[nodiscard]] Offset next() const {
    const std::scoped_lock lock(mutex_);
    return next_;
  }
  void fence(ProducerId id, ProducerEpoch epoch, Instant now) { producers_.fence(id, epoch, now); }
  void set_retention(const RetentionRules& rules) { options_.retention = rules; }

 private:
  /// What an append has prepared but not yet written.
  struct Staged {
    std::vector<BatchHeader> headers;
    // The producers' states before the append, to be restored if the write fails.
    std::vector<std::pair<ProducerId, std::optional<ProducerTable::Producer>>> producers_before;
  };

  /// The last segment in its closed form, and the segment after it.
  struct Rolled {
    std::shared_ptr<const LogSegment> closed;
    std::shared_ptr<const LogSegment> next;
    IndexBuilder builder;
  };

  [[nodiscard]] std::string path(Offset base, std::string_view suffix) const {
    return folder_ + "/" + log_file_name(base, suffix);
  }
  [[nodiscard]] Offset base() const { return segments_.back()->base(); }

  [[nodiscard]] Status check_writable() const;
  Error fail(Error error);
  Status make_room(std::uint64_t bytes, std::int64_t records);
  AppendOutcome stage(const CheckedBatch& batch, LeaderEpoch leader_epoch, Instant now);
  Status write_staged();
  void commit_staged();
  void undo_staged();
  Status roll();
  Result<Rolled> begin_next();
  Result<std::shared_ptr<const LogSegment>> close_last();
  void publish_segments();
  [[nodiscard]] std::vector<SegmentExtent> extents() const;
  Status roll_when_old(Instant now);
  Result<DroppedSegment> remove_first();

  Disk& disk_;
  const std::string folder_;
  PartitionLogOptions options_;
  const std::shared_ptr<SharedLog> shared_;

  // Used by the shard's thread alone.
  SegmentList segments_;
  ProducerTable producers_;
  IndexBuilder builder_;
  std::uint64_t position_;
  bool roll_due_ = false;  // A roll was begun and could not be finished.
  std::string buffer_;     // Reused: the batches of one append, encoded.
  Staged staged_;
  Offset staged_next_;

  std::mutex sync_mutex_;  // One sync at a time.
  mutable std::mutex mutex_;
  std::shared_ptr<File> file_;  // Of the last segment; those before it are synced.
  Offset next_;
  Offset synced_;
  std::optional<Error> failure_;
};

Status PartitionLog::Writer::check_writable() const {
  if (!shared_->damages.empty()) {
    return Error{Errc::read_only, shared_->damages.front().text};
  }
  const std::scoped_lock lock(mutex_);
  if (failure_) return Error{failure_->code, "the partition failed before: " + failure_->text};
  return {};
}

// After a failed write or sync the disk's content is unknown: nothing more may be confirmed.
Error PartitionLog::Writer::fail(Error error) {
  // Not disk_full: a caller would take that for a failure that changed nothing.
  if (error.code == Errc::disk_full) error.code = Errc::io_error;
  const std::scoped_lock lock(mutex_);
  failure_ = error;
  return error;
}

Result<std::vector<AppendOutcome>> PartitionLog::Writer::append(
    std::span<const CheckedBatch> batches, LeaderEpoch leader_epoch, Instant now) {
  BATON_TRY_STATUS(check_writable());
  std::uint64_t bytes = 0;
  std::int64_t records = 0;
  for (const CheckedBatch& batch : batches) {
    bytes += batch.bytes().size();
    records += batch.header().count;
  }
  if (bytes > kAppendBytesMax || records > kRelativeOffsetMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("an append of {} bytes and {} records; the limits are {} and {}",
                             bytes, records, kAppendBytesMax, kRelativeOffsetMax)};
  }
  // Before anything is staged: the snapshot of a roll must hold only what is stored.
  BATON_TRY_STATUS(make_room(bytes, records));
  buffer_.clear();
  staged_ = {};
  staged_next_ = next();
  std::vector<AppendOutcome> outcomes;
  outcomes.reserve(batches.size());
  for (const CheckedBatch& batch : batches) outcomes.push_back(stage(batch, leader_epoch, now));
  if (staged_.headers.empty()) return outcomes;
  Status written = write_staged();
  if (!written) {
    undo_staged();
    return std::move(written).error();
  }
  commit_staged();
  return outcomes;
}

Status PartitionLog::Writer::make_room(std::uint64_t bytes, std::int64_t records) {
  if (position_ == 0) return {};
  const bool full = roll_due_ || position_ + bytes > options_.segment_bytes ||
                    next().value - base().value + records > kRelativeOffsetMax;
  return full ? roll() : Status{};
}

AppendOutcome PartitionLog::Writer::stage(const CheckedBatch& batch, LeaderEpoch leader_epoch,
                                          Instant now) {
  BatchHeader header = batch.header();
  if (header.idempotent()) {
    ProducerTable::Answer answer = producers_.check(header.producer, header.count);
    if (answer.verdict != ProducerVerdict::append) {
      return {answer.verdict, answer.base_offset, std::move(answer.text)};
    }
    staged_.producers_before.emplace_back(header.producer.id, producers_.find(header.producer.id));
  }
  header.base_offset = staged_next_;
  header.leader_epoch = leader_epoch;
  const std::size_t at = buffer_.size();
  buffer_.append(batch.bytes());
  set_base_offset(std::span(buffer_).subspan(at), header.base_offset, leader_epoch);
  producers_.apply(header, now);
  staged_next_ = header.next_offset();
  staged_.headers.push_back(header);
  return {ProducerVerdict::append, header.base_offset, {}};
}

// A full disk may keep a part of the bytes. They are removed at once and durably: after a crash, a
// later, shorter append must not be followed by the rest of them.
Status PartitionLog::Writer::write_staged() {
  Status written = file_->write_at(position_, buffer_);
  if (written) return {};
  Error error = std::move(written).error();
  if (error.code != Errc::disk_full) return fail(std::move(error));
  Status cut = file_->truncate(position_);
  if (cut) cut = file_->sync();
  if (!cut) return fail(std::move(cut).error());
  return error;
}

void PartitionLog::Writer::commit_staged() {
  for (const BatchHeader& header : staged_.headers) {
    builder_.add(header, position_);
    position_ += header.bytes;
  }
  const std::scoped_lock lock(mutex_);
  BATON_ASSERT(staged_.headers.front().base_offset == next_);
  next_ = staged_next_;
}

void PartitionLog::Writer::undo_staged() {
  // Backwards: the first entry of a producer holds its state before all of them.
  for (auto at = staged_.producers_before.rbegin(); at != staged_.producers_before.rend(); ++at) {
    producers_.restore(at->first, at->second);
  }
}

Result<Offset> PartitionLog::Writer::sync() {
  const std::scoped_lock one_at_a_time(sync_mutex_);
  std::shared_ptr<File> file;
  Offset end;
  {
    const std::scoped_lock lock(mutex_);
    if (failure_) return Error{failure_->code, "the partition failed before: " + failure_->text};
    if (synced_ == next_) return synced_;
    file = file_;
    end = next_;
  }
  Status synced = file->sync();
  if (!synced) return fail(std::move(synced).error());
  const std::scoped_lock lock(mutex_);
  synced_ = std::max(synced_, end);
  return end;
}

void PartitionLog::Writer::publish(Offset end) {
  BATON_ASSERT(end <= next());
  std::int64_t visible = shared_->visible.load(std::memory_order_relaxed);
  while (visible < end.value &&
         !shared_->visible.compare_exchange_weak(visible, end.value, std::memory_order_release)) {
  }
}

// The closed segment is durable before the next one exists, so that only the last can ever have a
// torn tail. Until then nothing has changed, and the caller may try again after a full disk or too
// many open files.
Status PartitionLog::Writer::roll() {
  Status synced = file_->sync();
  if (!synced) return fail(std::move(synced).error());
  // The next segment's file may exist already: this segment must not grow past its name.
  roll_due_ = true;
  auto rolled = begin_next();
  const bool bearable = !rolled && (rolled.error().code == Errc::disk_full ||
                                    rolled.error().code == Errc::resource_exhausted);
  if (bearable) return std::move(rolled).error();
  if (!rolled) return fail(std::move(rolled).error());

  roll_due_ = false;
  segments_.back() = std::move(rolled->closed);
  segments_.push_back(std::move(rolled->next));
  builder_ = std::move(rolled->builder);
  position_ = 0;
  publish_segments();
  const std::scoped_lock lock(mutex_);
  file_ = segments_.back()->parts().file;
  synced_ = std::max(synced_, segments_.back()->base());
  return {};
}

Result<PartitionLog::Writer::Rolled> PartitionLog::Writer::begin_next() {
  const Offset next_base = next();
  BATON_TRY(auto closed, close_last());
  IndexBuilder builder(next_base, options_.index_interval_bytes);
  LogSegment::Parts parts{.base = next_base, .path = path(next_base, kLogSuffix)};
  BATON_TRY(parts.file, create_log_file(disk_, folder_, next_base));
  parts.memory = builder.index();
  return Rolled{.closed = std::move(closed),
                .next = std::make_shared<const LogSegment>(std::move(parts)),
                .builder = std::move(builder)};
}

Result<std::shared_ptr<const LogSegment>> PartitionLog::Writer::close_last() {
  BATON_TRY(auto files, write_index_files(disk_, folder_, base(), builder_));
  BATON_TRY_STATUS(
      write_whole_file(disk_, path(next(), kSnapshotSuffix), producers_.encode_snapshot(next())));
  LogSegment::Parts parts = segments_.back()->parts();
  parts.memory = nullptr;
  parts.files = std::move(files);
  parts.bytes = position_;
  parts.greatest = builder_.greatest();
  return std::make_shared<const LogSegment>(std::move(parts));
}

void PartitionLog::Writer::publish_segments() {
  shared_->segments.store(std::make_shared<const SegmentList>(segments_));
}

std::vector<SegmentExtent> PartitionLog::Writer::extents() const {
  std::vector<SegmentExtent> extents;
  for (const auto& segment : segments_) {
    extents.push_back({segment->parts().bytes, segment->parts().greatest});
  }
  extents.back() = {position_, builder_.greatest()};
  return extents;
}

// Otherwise a partition that is no longer written to would keep its last records for ever.
Status PartitionLog::Writer::roll_when_old(Instant now) {
  const bool published = shared_->visible.load() == next().value;
  if (position_ == 0 || !published) return {};
  if (!is_past_age(extents().back(), options_.retention, now)) return {};
  return roll();
}

Result<std::vector<DroppedSegment>> PartitionLog::Writer::drop_old_segments(Instant now) {
  BATON_TRY_STATUS(check_writable());
  std::vector<DroppedSegment> dropped;
  producers_.expire(now + -options_.producer_expiry);
  BATON_TRY_STATUS(roll_when_old(now));
  const Offset visible{shared_->visible.load()};
  for (std::size_t left = count_expired(extents(), options_.retention, now); left > 0; --left) {
    // The end of the segment is not visible yet, or the segment is being read.
    const bool stays = segments_[1]->base() > visible || !segments_.front()->hold().end();
    if (stays) break;
    BATON_TRY(const DroppedSegment segment, remove_first());
    dropped.push_back(segment);
  }
  return dropped;
}

// Removes one at a time and durably, the oldest first: a crash must not leave a gap.
Result<DroppedSegment> PartitionLog::Writer::remove_first() {
  const auto segment = segments_.front();
  segments_.erase(segments_.begin());
  publish_segments();
  BATON_TRY_STATUS(disk_.remove(segment->parts().path));
  BATON_TRY_STATUS(disk_.sync_folder(folder_));
  for (const std::string_view suffix : {kIndexSuffix, kTimeIndexSuffix, kSnapshotSuffix}) {
    const Status removed = disk_.remove(path(segment->base(), suffix));
    if (!removed && removed.error().code != Errc::not_found) return removed.error();
  }
  return DroppedSegment{segment->base(), segments_.front()->base(), segment->parts().bytes};
}

PartitionDescription PartitionLog::Writer::describe() const {
  PartitionDescription description{.first = segments_.front()->base(),
                                   .next = next(),
                                   .visible = Offset{shared_->visible.load()},
                                   .bytes = 0,
                                   .segments = segments_.size(),
                                   .producers = producers_.size(),
                                   .read_only = {},
                                   .damaged = shared_->found.first()};
  for (const SegmentExtent& extent : extents()) description.bytes += extent.bytes;
  if (!shared_->damages.empty()) description.read_only = shared_->damages.front().text;
  return description;
}

PartitionLog::PartitionLog(std::unique_ptr<Writer> writer) : writer_(std::move(writer)) {}
PartitionLog::~PartitionLog() = default;

Result<std::unique_ptr<PartitionLog>> PartitionLog::open(Disk& disk, std::string folder,
                                                         const Opening& opening) {
  BATON_TRY_STATUS(check_options(opening.options));
  BATON_TRY(OpenedLog opened, open_log_folder(disk, folder, opening));
  auto writer = std::make_unique<Writer>(disk, std::move(folder), opening, std::move(opened));
  return std::unique_ptr<PartitionLog>(new PartitionLog(std::move(writer)));
}

Result<std::vector<AppendOutcome>> PartitionLog::append(std::span<const CheckedBatch> batches,
                                                        LeaderEpoch leader_epoch, Instant now) {
  return writer_->append(batches, leader_epoch, now);
}
Result<Offset> PartitionLog::sync() { return writer_->sync(); }
void PartitionLog::publish(Offset end) { writer_->publish(end); }
PartitionReader PartitionLog::reader() const { return writer_->reader(); }
Offset PartitionLog::next() const { return writer_->next(); }
PartitionDescription PartitionLog::describe() const { return writer_->describe(); }
void PartitionLog::fence(ProducerId id, ProducerEpoch epoch, Instant now) {
  writer_->fence(id, epoch, now);
}
void PartitionLog::set_retention(const RetentionRules& rules) { writer_->set_retention(rules); }
Result<std::vector<DroppedSegment>> PartitionLog::drop_old_segments(Instant now) {
  return writer_->drop_old_segments(now);
}

Status remove_partition(Disk& disk, const std::string& folder) {
  BATON_TRY(const std::vector<std::string> names, disk.list(folder));
  for (const std::string& name : names)
    BATON_TRY_STATUS(disk.remove(fmt::format("{}/{}", folder, name)));
  if (names.empty()) return {};
  return disk.sync_folder(folder);
}

}  // namespace baton
