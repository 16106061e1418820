#include "storage/log/partition_reader.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/stream/records.h"
#include "storage/log/log_segment.h"

namespace baton {
namespace {

// Upper bound of one read, whatever the caller asks for.
constexpr std::size_t kReadBytesMax = std::size_t{64} << 20U;

/// The damage that contains `offset`, or else the next one; null when all after it is sound.
const LogDamage* damage_from(const std::vector<LogDamage>& damages, Offset offset) {
  const auto found =
      std::ranges::find_if(damages, [&](const LogDamage& damage) { return damage.until > offset; });
  return found == damages.end() ? nullptr : &*found;
}

Error out_of_range(Offset from, Offset first, Offset next) {
  return {Errc::offset_out_of_range, fmt::format("offset {}; the first is {}, the next is {}",
                                                 from.value, first.value, next.value)};
}

std::size_t index_of(const SegmentList& segments, Offset offset) {
  const auto after = std::ranges::upper_bound(segments, offset, {},
                                              [](const auto& segment) { return segment->base(); });
  return static_cast<std::size_t>(after - segments.begin()) - 1;
}

/// Where the good batches in `bytes` end, counting those that begin before `limit`.
struct WholeBatches {
  std::size_t bytes = 0;
  Offset first;
  Offset next;
  bool damaged = false;  // What follows is a whole batch whose checksum does not fit.
};

WholeBatches count_whole(std::string_view bytes, Offset limit) {
  WholeBatches whole;
  // Bytes beyond the limit may be half written: they are not even checked.
  while (whole.bytes == 0 || whole.next < limit) {
    const auto batch = BatchView::parse(bytes.substr(whole.bytes));
    const bool follows = batch && (whole.bytes == 0 || batch->header().base_offset == whole.next);
    if (!follows) break;
    whole.damaged = !batch->check_crc().has_value();
    if (whole.damaged) break;
    if (whole.bytes == 0) whole.first = batch->header().base_offset;
    whole.bytes += batch->bytes().size();
    whole.next = batch->header().next_offset();
  }
  return whole;
}

/// The first record of the batch at or after the time; the batch's first record if none can be
/// read.
Offset first_at_or_after(std::string_view bytes, const BatchHeader& header, TimestampMs at) {
  const auto batch = BatchView::parse(bytes);
  if (!batch) return header.base_offset;
  auto reader = RecordReader::open(*batch);
  if (!reader) return header.base_offset;
  RecordView record;
  while (true) {
    const auto found = reader->next(record);
    if (!found || !*found) return header.base_offset;
    if (record.timestamp >= at) return record.offset;
  }
}

}  // namespace

/// The end of the last read, in a segment that is held.
struct PartitionReader::Place {
  explicit Place(std::shared_ptr<const LogSegment> held) : segment(std::move(held)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { segment->hold().leave(); }

  std::shared_ptr<const LogSegment> segment;
  Offset offset{-1};
  std::uint64_t position = 0;
};

PartitionReader::PartitionReader(std::shared_ptr<const SharedLog> log) : log_(std::move(log)) {}
PartitionReader::PartitionReader(const PartitionReader& other) : log_(other.log_) {}
PartitionReader::PartitionReader(PartitionReader&&) noexcept = default;
PartitionReader& PartitionReader::operator=(PartitionReader&&) noexcept = default;
PartitionReader::~PartitionReader() = default;

Offset PartitionReader::first() const { return log_->segments.load()->front()->base(); }

Offset PartitionReader::next() const { return Offset{log_->visible.load()}; }

void PartitionReader::release() { place_.reset(); }

// A segment that retention is just removing counts as gone already.
Result<std::shared_ptr<const LogSegment>> PartitionReader::take_segment(Offset from,
                                                                        Offset end) const {
  const auto segments = log_->segments.load();
  if (from < segments->front()->base() || from > end) {
    return out_of_range(from, segments->front()->base(), end);
  }
  const std::size_t at = index_of(*segments, from);
  if ((*segments)[at]->hold().take()) return (*segments)[at];
  const bool last = at + 1 == segments->size();
  return out_of_range(from, last ? end : (*segments)[at + 1]->base(), end);
}

Result<ReadBatches> PartitionReader::read(Offset from, std::size_t bytes_max) {
  const Offset end{log_->visible.load(std::memory_order_acquire)};
  BATON_TRY(auto segment, take_segment(from, end));
  // The new hold is taken before the old one is released, so that reading on loses nothing.
  auto place = std::make_unique<Place>(std::move(segment));
  const LogDamage* const damage = damage_from(log_->damages, from);
  if (damage != nullptr && damage->from <= from) return Error{Errc::malformed, damage->text};
  if (from == end) return ReadBatches{.bytes = {}, .first = from, .next = from};
  const bool goes_on = place_ != nullptr && place_->offset == from &&
                       place_->segment->parts().file == place->segment->parts().file;
  if (goes_on) {
    place->offset = from;
    place->position = place_->position;
  }
  place_ = std::move(place);
  const Offset limit = damage != nullptr ? std::min(end, damage->from) : end;
  auto batches = read_segment(from, limit, std::min(bytes_max, kReadBytesMax));
  if (!batches) note(batches.error());
  return batches;
}

void PartitionReader::note(const Error& error) const {
  if (error.code == Errc::malformed) log_->found.note(error.text);
}

Result<ReadBatches> PartitionReader::read_segment(Offset from, Offset limit,
                                                  std::size_t bytes_max) {
  const LogSegment& segment = *place_->segment;
  Offset first = from;  // Of the batch at the position.
  if (place_->offset != from) {
    BATON_TRY(const LogSegment::Found found, segment.find(from));
    place_->position = found.position;
    first = found.header.base_offset;
    bytes_max = std::max<std::size_t>(bytes_max, found.header.bytes);
  }
  place_->offset = Offset{-1};
  const std::uint64_t position = place_->position;
  BATON_TRY(std::string bytes,
            segment.file().read_at(position, std::max(bytes_max, kBatchHeaderBytes)));
  WholeBatches whole = count_whole(bytes, limit);
  if (whole.bytes == 0 && !whole.damaged) {
    const auto header = decode_batch_header(bytes);
    if (!header) return segment.damaged(position, header.error().text);
    BATON_TRY(bytes, segment.file().read_at(position, header->bytes));
    whole = count_whole(bytes, limit);
  }
  if (whole.bytes == 0 && whole.damaged) return segment.damaged(position, kBadChecksum);
  if (whole.bytes == 0 || whole.first != first || whole.next <= from) {
    return segment.damaged(position, fmt::format("no batch with offset {}", from.value));
  }
  bytes.resize(whole.bytes);
  place_->offset = whole.next;
  place_->position = position + whole.bytes;
  return ReadBatches{.bytes = std::move(bytes), .first = whole.first, .next = whole.next};
}

Result<Offset> PartitionReader::offset_for_time(TimestampMs at) const {
  auto offset = find_time(at);
  if (!offset) note(offset.error());
  return offset;
}

Result<Offset> PartitionReader::find_time(TimestampMs at) const {
  const Offset end{log_->visible.load(std::memory_order_acquire)};
  const auto segments = log_->segments.load();
  for (std::size_t i = 0; i < segments->size(); ++i) {
    const LogSegment& segment = *(*segments)[i];
    const bool closed = i + 1 < segments->size();
    const Offset limit = closed ? std::min(end, (*segments)[i + 1]->base()) : end;
    BATON_TRY(const auto found, segment.find_time(at, limit));
    if (!found) continue;
    BATON_TRY(const std::string bytes,
              segment.file().read_at(found->position, found->header.bytes));
    return first_at_or_after(bytes, found->header, at);
  }
  return end;
}

}  // namespace baton
