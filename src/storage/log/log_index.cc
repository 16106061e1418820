#include "storage/log/log_index.h"

#include <limits>

#include "base/assert.h"
#include "core/stream/big_endian.h"

namespace baton {

void encode_entry(const OffsetEntry& entry, std::string& out) {
  std::array<char, kOffsetEntryBytes> bytes{};
  store_big(bytes.data(), entry.last);
  store_big(bytes.data() + sizeof entry.last, entry.position);
  out.append(bytes.data(), bytes.size());
}

void encode_entry(const TimeEntry& entry, std::string& out) {
  std::array<char, kTimeEntryBytes> bytes{};
  store_big(bytes.data(), entry.greatest.value);
  store_big(bytes.data() + sizeof entry.greatest.value, entry.last);
  out.append(bytes.data(), bytes.size());
}

OffsetEntry decode_offset_entry(const char* bytes) {
  return {.last = load_big<std::int32_t>(bytes), .position = load_big<std::int32_t>(bytes + 4)};
}

TimeEntry decode_time_entry(const char* bytes) {
  return {.greatest = TimestampMs{load_big<std::int64_t>(bytes)},
          .last = load_big<std::int32_t>(bytes + 8)};
}

std::int32_t IndexBuilder::relative(Offset offset) const {
  const std::int64_t distance = offset.value - base_.value;
  BATON_ASSERT(distance >= 0 && distance <= std::numeric_limits<std::int32_t>::max());
  return static_cast<std::int32_t>(distance);
}

void IndexBuilder::add(const BatchHeader& batch, std::uint64_t position) {
  BATON_ASSERT(position <= std::numeric_limits<std::int32_t>::max());
  if (batch.max_timestamp > greatest_) {
    greatest_ = batch.max_timestamp;
    greatest_at_ = batch.last_offset();
  }
  if (bytes_since_entry_ > interval_bytes_) {
    index_->offsets.push_back(
        {.last = relative(batch.last_offset()), .position = static_cast<std::int32_t>(position)});
    if (const auto time = last_time()) index_->times.push_back(*time);
    bytes_since_entry_ = 0;
  }
  bytes_since_entry_ += batch.bytes;
}

std::optional<TimeEntry> IndexBuilder::last_time() const {
  if (greatest_.value < 0) return std::nullopt;
  const auto& times = index_->times;
  const std::size_t size = times.size();
  if (size > 0 && times[size - 1].greatest >= greatest_) return std::nullopt;
  return TimeEntry{.greatest = greatest_, .last = relative(greatest_at_)};
}

std::string encode_offsets(const IndexBuilder& builder) {
  std::string bytes;
  const auto& offsets = builder.index()->offsets;
  for (std::size_t i = 0; i < offsets.size(); ++i) encode_entry(offsets[i], bytes);
  return bytes;
}

std::string encode_times(const IndexBuilder& builder) {
  std::string bytes;
  const auto& times = builder.index()->times;
  for (std::size_t i = 0; i < times.size(); ++i) encode_entry(times[i], bytes);
  if (const auto last = builder.last_time()) encode_entry(*last, bytes);
  return bytes;
}

}  // namespace baton
