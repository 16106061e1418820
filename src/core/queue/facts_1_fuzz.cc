// Facts of format 1 from arbitrary bytes: a fact that decodes can be written in the current format,
// and reads back as the same fact.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "core/queue/facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  baton::Decoder in({reinterpret_cast<const char*>(bytes), size});  // NOLINT
  while (!in.empty()) {
    const baton::Result<baton::QueueFact> fact = decode_queue_fact_1(in);
    if (!fact.has_value()) break;
    std::string encoded;
    baton::Encoder out(encoded);
    encode(out, *fact);
    baton::Decoder again(encoded);
    const baton::Result<baton::QueueFact> decoded = decode_queue_fact(again);
    BATON_ASSERT(decoded.has_value() && again.finish() && decoded->index() == fact->index());
    std::string twice;
    baton::Encoder second(twice);
    encode(second, *decoded);
    BATON_ASSERT(twice == encoded);
  }
  return 0;
}
