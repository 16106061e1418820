// Keys and values of the checkpoint's rows from arbitrary bytes: every decoder sees every input,
// and a value that decodes must encode to bytes that decode to the same value.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/queue/rows.h"

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

void values(std::string_view bytes) {
  round_trip(bytes, decode_message_row);
  round_trip(bytes, decode_key_row);
  round_trip(bytes, decode_lease_row);
  round_trip(bytes, decode_queue_row);
  round_trip(bytes, decode_dedup_row);
  round_trip(bytes, decode_id_row);
  Decoder in(bytes);
  const QueueSettings settings = decode_settings(in);
  if (in.ok()) BATON_ASSERT(validate(settings).has_value());
}

void keys(std::string_view bytes) {
  if (const auto key = decode_message_key(bytes); key.has_value()) {
    BATON_ASSERT(message_key(key->queue, key->fairness_key, key->sequence) == bytes);
  }
  if (const auto key = decode_time_key(bytes); key.has_value()) {
    BATON_ASSERT(time_key(key->at, key->queue, key->id) == bytes);
  }
  if (const auto key = decode_queue_and_id(bytes); key.has_value()) {
    BATON_ASSERT(queue_and_id(key->queue, key->id.raw()) == bytes);
  }
  if (const auto key = decode_fairness_key_row(bytes); key.has_value()) {
    BATON_ASSERT(fairness_key_row(key->first, key->second) == bytes);
  }
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::values(input);
  baton::keys(input);
  return 0;
}
