// Facts of format 1 from arbitrary bytes: what decodes can be written in today's format, and means
// the same there.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "core/kv/facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  baton::Decoder in({reinterpret_cast<const char*>(bytes), size});  // NOLINT
  while (!in.empty()) {
    const baton::Result<baton::KvFact> fact = baton::decode_kv_fact_1(in);
    if (!fact.has_value()) break;
    std::string encoded;
    baton::Encoder out(encoded);
    encode(out, *fact);
    baton::Decoder again(encoded);
    const baton::Result<baton::KvFact> decoded = baton::decode_kv_fact(again);
    BATON_ASSERT(decoded.has_value() && again.finish() && decoded->index() == fact->index());
  }
  return 0;
}
