// Opens a partition whose only segment is made of the input: once as it is, and once as batches
// with corrected lengths, offsets and checksums, since no fuzzer guesses a CRC. A log that opens
// must be readable as it says, and must accept and keep another batch unless it is read-only.

#include <algorithm>

#include "base/assert.h"
#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/big_endian.h"
#include "core/stream/records.h"
#include "sim/fake_disk.h"
#include "storage/log/log_segment.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

const std::string kFolder = "partition";
constexpr Instant kNow{1'700'000'000'000'000'000};

/// Takes lengths and counts from the bytes, and makes the rest of each header fit.
std::string with_good_headers(std::string bytes) {
  namespace at = batch_layout;
  std::size_t position = 0;
  std::int64_t next = 0;
  while (bytes.size() - position >= kBatchHeaderBytes) {
    char* const batch = bytes.data() + position;
    const std::size_t rest = bytes.size() - position - kBatchHeaderBytes;
    const std::size_t size =
        kBatchHeaderBytes + std::min<std::size_t>(rest, static_cast<std::uint8_t>(batch[11]));
    const std::int32_t count = 1 + static_cast<std::uint8_t>(batch[at::kCount + 3]);
    // Mostly the next offset, sometimes another one.
    store_big(batch + at::kBaseOffset, next + (batch[0] == 'x' ? 1 : 0));
    store_big(batch + at::kLength, static_cast<std::int32_t>(size - kBatchLengthEnd));
    batch[at::kMagic] = static_cast<char>(at::kMagicValue);
    store_big(batch + at::kLastOffsetDelta, count - 1);
    store_big(batch + at::kCount, count);
    const std::string_view covered(batch + at::kAttributes, size - at::kAttributes);
    store_big(batch + at::kCrc, crc32c(covered));
    position += size;
    next += count;
  }
  return bytes;
}

Result<std::unique_ptr<PartitionLog>> open(Disk& disk, Offset synced_end) {
  PartitionLogOptions options;
  options.segment_bytes = 4096;
  options.index_interval_bytes = 64;
  return PartitionLog::open(disk, kFolder,
                            {.options = options, .synced_end = synced_end, .now = kNow});
}

void read_everything(const PartitionLog& log, bool damaged) {
  PartitionReader reader = log.reader();
  Offset at = reader.first();
  while (at < reader.next()) {
    const auto read = reader.read(at, 100);
    BATON_ASSERT(read.has_value() || damaged);
    if (!read) return;
    BATON_ASSERT(read->first <= at && read->next > at);
    at = read->next;
  }
  const auto time = reader.offset_for_time(TimestampMs{1'700'000'000'000});
  BATON_ASSERT(time.has_value() || damaged);
}

void append_one(PartitionLog& log) {
  BatchBuilder builder;
  BATON_ASSERT(builder
                   .add({.key = "one",
                         .value = "more",
                         .headers = {},
                         .timestamp = TimestampMs{1'700'000'000'000}})
                   .has_value());
  const std::string bytes = builder.finish().value();
  const auto checked = check_batch(bytes, {}, kNow);
  const Offset next = log.next();
  const auto outcomes = log.append(std::span(&*checked, 1), LeaderEpoch{0}, kNow);
  BATON_ASSERT(outcomes.has_value() && outcomes->front().base_offset == next);
  BATON_ASSERT(log.sync().has_value());
}

void open_segment(const std::string& bytes, Offset synced_end) {
  FakeDisk disk(1);
  BATON_ASSERT(disk.make_folder(kFolder).has_value());
  auto file = disk.create(kFolder + "/" + log_file_name(Offset{0}, kLogSuffix)).value();
  BATON_ASSERT(file->write_at(0, bytes).has_value());
  auto log = open(disk, synced_end);
  BATON_ASSERT(log.has_value());
  const PartitionDescription description = (*log)->describe();
  const bool damaged = description.read_only.has_value();
  BATON_ASSERT(damaged || description.next >= synced_end);
  read_everything(**log, damaged);
  if (damaged) return;
  append_one(**log);
  disk.crash();
  log = open(disk, synced_end);
  BATON_ASSERT(log.has_value());
  BATON_ASSERT((*log)->next().value == description.next.value + 1);
  read_everything(**log, false);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size > 65536) return 0;
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::open_segment(input, baton::Offset{0});
  const std::string good = baton::with_good_headers(input);
  baton::open_segment(good, baton::Offset{0});
  // The first byte says how much was synced.
  baton::open_segment(good, baton::Offset{size == 0 ? 0 : bytes[0] % 8});
  return 0;
}
