// Keys and values of the checkpoint's rows from arbitrary bytes: every decoder sees every input,
// and what it takes must encode to bytes that decode to the same again. A machine that is given the
// bytes as rows takes them or refuses them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/kv/machine.h"
#include "core/kv/rows.h"

namespace baton {
namespace {

template <class Decode>
void round_trip(std::string_view bytes, Decode decode) {
  const auto row = decode(bytes);
  if (!row.has_value()) return;
  const std::string encoded = encode_row(*row);
  const auto again = decode(encoded);
  BATON_ASSERT(again.has_value());
  BATON_ASSERT(encode_row(*again) == encoded);
}

void keys(std::string_view bytes) {
  if (const auto bucket = decode_bucket_row_key(bytes); bucket.has_value()) {
    BATON_ASSERT(bucket_row_key(*bucket) == bytes);
  }
  if (const auto place = decode_entry_row_key(bytes); place.has_value()) {
    BATON_ASSERT(entry_row_key(place->bucket, place->key) == bytes);
  }
}

/// The bytes as a bucket, as what comes next, and as a key of that bucket; then used.
void load(std::string_view bytes) {
  KvMachine machine({}, [](const KvFact&) {});
  const std::string value(bytes);
  const Status next = machine.load(tables::kKvBuckets, {std::string(kKvNextRowKey), value});
  const Status bucket = machine.load(tables::kKvBuckets, {bucket_row_key(BucketId{1}), value});
  const Status named = machine.load(
      tables::kKvBuckets,
      {bucket_row_key(BucketId{2}), encode_row(KvBucketRow{"named", {}, Revision{1U << 20U}, {}})});
  const Status entry = machine.load(tables::kKvEntries, {entry_row_key(BucketId{2}, "k"), value});
  const Status odd = machine.load(tables::kKvEntries, {value, value});
  BATON_ASSERT(!odd.has_value() || value.size() > sizeof(std::uint64_t));
  if (!named.has_value()) return;
  const auto found = machine.get("named", "k", Instant{0});
  BATON_ASSERT(found.has_value());
  BATON_ASSERT(*found == nullptr || entry.has_value());
  BATON_ASSERT(machine.totals().buckets == (bucket.has_value() ? 2U : 1U));
  (void)next;
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::round_trip(input, baton::decode_bucket_row);
  baton::round_trip(input, baton::decode_kv_next_row);
  baton::round_trip(input, baton::decode_entry_row);
  baton::keys(input);
  baton::load(input);
  return 0;
}
