// Facts from arbitrary bytes: what decodes must encode to bytes that decode to the same again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/kv/facts.h"

namespace {

std::string encoded(const baton::KvFact& fact) {
  std::string bytes;
  baton::Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  baton::Decoder in({reinterpret_cast<const char*>(bytes), size});  // NOLINT
  while (!in.empty()) {
    const baton::Result<baton::KvFact> fact = baton::decode_kv_fact(in);
    if (!fact.has_value()) break;
    const std::string once = encoded(*fact);
    baton::Decoder again(once);
    const baton::Result<baton::KvFact> decoded = baton::decode_kv_fact(again);
    BATON_ASSERT(decoded.has_value() && again.finish());
    BATON_ASSERT(encoded(*decoded) == once);
  }
  return 0;
}
