// Facts and rows of streams from arbitrary bytes, of both formats: what decodes must encode to
// bytes that decode to the same again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/stream/catalog.h"

namespace baton {
namespace {

std::string encoded(const StreamFact& fact) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

template <class Decode>
void facts(std::string_view bytes, const Decode& decode) {
  Decoder in(bytes);
  while (!in.empty()) {
    const Result<StreamFact> fact = decode(in);
    if (!fact.has_value()) break;
    const std::string once = encoded(*fact);
    Decoder again(once);
    const Result<StreamFact> decoded = decode_stream_fact(again);
    BATON_ASSERT(decoded.has_value() && again.finish());
    BATON_ASSERT(encoded(*decoded) == once);
  }
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace baton;                                                     // NOLINT
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  facts(input, [](Decoder& in) { return decode_stream_fact(in); });
  facts(input, [](Decoder& in) { return decode_stream_fact_1(in); });
  StreamCatalog catalog;
  const std::string value(input);
  const Status stream = catalog.load(tables::kStreams, {std::string(8, '\1'), value});
  const Status next = catalog.load(tables::kStreams, {"next", value});
  const Status producer =
      catalog.load(tables::kStreamProducers, {std::string(8, '\1') + "p", value});
  BATON_ASSERT(!stream.has_value() || catalog.all().size() == 1);
  static_cast<void>(next);
  static_cast<void>(producer);
  return 0;
}
