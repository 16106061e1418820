// Decodes the input as a snapshot: once as it is, and once with its checksum made good. What is
// decoded must come back the same, and answer whatever it is asked.

#include <limits>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "core/stream/producer_table.h"

namespace baton {
namespace {

void ask(ProducerTable table) {
  for (const std::int64_t id : {0, 1, 7}) {
    const auto known = table.find(ProducerId{id});
    const ProducerEpoch epoch = known ? known->epoch : ProducerEpoch{0};
    for (const std::int32_t sequence : {0, 10, std::numeric_limits<std::int32_t>::max()}) {
      BatchHeader batch;
      batch.producer = {ProducerId{id}, epoch, Sequence32{sequence}};
      batch.count = 5;
      batch.last_offset_delta = 4;
      if (table.check(batch.producer, batch.count).verdict != ProducerVerdict::append) continue;
      table.apply(batch, Instant{1});
      BATON_ASSERT(table.check(batch.producer, batch.count).verdict == ProducerVerdict::duplicate);
    }
  }
}

void check(std::string_view bytes) {
  const auto snapshot = ProducerTable::decode_snapshot(bytes);
  if (!snapshot) return;
  const std::string again = snapshot->table.encode_snapshot(snapshot->next);
  const auto back = ProducerTable::decode_snapshot(again);
  BATON_ASSERT(back.has_value() && back->table.encode_snapshot(back->next) == again);
  ask(snapshot->table);
}

void check_with_good_checksum(std::string bytes) {
  Encoder(bytes).fixed(crc32c(bytes));
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
