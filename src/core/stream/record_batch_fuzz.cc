// Checks the input as a batch: once as it is, and once with its length and checksum made good,
// since no fuzzer guesses a CRC. What is accepted must be readable, and must be the same batch once
// its records are put into a new one.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/big_endian.h"
#include "core/stream/records.h"

namespace baton {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};
constexpr std::size_t kDecompressedMax = std::size_t{1} << 20U;

void add(BatchBuilder& builder, RecordView& record) {
  std::vector<RecordHeader> headers;
  while (const auto header = record.headers.next()) headers.push_back(*header);
  BATON_ASSERT(builder
                   .add({.key = record.key,
                         .value = record.value,
                         .headers = headers,
                         .timestamp = record.timestamp})
                   .has_value());
}

/// False when the records cannot be read, which only a compressed batch may do to us.
bool build_again(const BatchView& batch, BatchBuilder& builder) {
  auto reader = RecordReader::open(batch, kDecompressedMax);
  if (!reader) return false;
  RecordView record;
  while (true) {
    const auto found = reader->next(record);
    if (!found) return false;
    if (!*found) return true;
    // Nobody looks that closely into a compressed batch, but the builder refuses it.
    if (record.timestamp.value < 0) continue;
    add(builder, record);
  }
}

void check(std::string_view bytes) {
  const auto checked = check_batch(bytes, {}, kNow);
  if (!checked) return;
  const BatchHeader& header = checked->header();
  BATON_ASSERT(header.bytes == bytes.size() && header.count > 0);
  BatchBuilder builder(4 * kDecompressedMax);
  const bool readable = build_again(checked->view(), builder);
  const bool compressed = header.compression() != Compression::none;
  BATON_ASSERT(readable || compressed);
  if (!readable || builder.empty()) return;
  const std::string again = builder.finish().value();
  const auto view = BatchView::parse(again);
  BATON_ASSERT(view.has_value() && view->header().count <= header.count);
  BATON_ASSERT(compressed || view->header().max_timestamp == header.max_timestamp);
}

void check_with_good_checksum(std::string bytes) {
  if (bytes.size() < kBatchHeaderBytes) return;
  store_big(bytes.data() + batch_layout::kLength,
            static_cast<std::int32_t>(bytes.size() - kBatchLengthEnd));
  bytes[batch_layout::kMagic] = static_cast<char>(batch_layout::kMagicValue);
  store_big(bytes.data() + batch_layout::kCrc,
            crc32c(std::string_view(bytes).substr(batch_layout::kAttributes)));
  check(bytes);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::check(input);
  baton::check_with_good_checksum(input);
  return 0;
}
