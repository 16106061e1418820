// The first byte chooses the compression, the rest is decompressed. What comes out keeps to its
// limit, and survives being compressed again.

#include "base/assert.h"
#include "core/stream/compression.h"

namespace baton {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20U;

void check(Compression compression, std::string_view bytes) {
  const auto out = decompress(compression, bytes, kBytesMax);
  if (!out) return;
  BATON_ASSERT(out->size() <= kBytesMax);
  std::string again;
  BATON_ASSERT(compress(compression, *out, again).has_value());
  const auto back = decompress(compression, again, kBytesMax);
  BATON_ASSERT(back.has_value() && *back == *out);
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  baton::check(baton::Compression(bytes[0] % 5), input.substr(1));
  return 0;
}
