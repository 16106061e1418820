// Facts from arbitrary bytes: what decodes must encode to bytes that decode to the same again.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "core/group/facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  baton::Decoder in({reinterpret_cast<const char*>(bytes), size});  // NOLINT
  while (!in.empty()) {
    const baton::Result<baton::CoordinatorFact> fact = decode_coordinator_fact(in);
    if (!fact.has_value()) break;
    std::string encoded;
    baton::Encoder out(encoded);
    encode(out, *fact);
    baton::Decoder again(encoded);
    const baton::Result<baton::CoordinatorFact> decoded = decode_coordinator_fact(again);
    BATON_ASSERT(decoded.has_value() && again.finish());
    std::string twice;
    baton::Encoder second(twice);
    encode(second, *decoded);
    BATON_ASSERT(twice == encoded);
  }
  return 0;
}
