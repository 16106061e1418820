// Frames and fields from arbitrary bytes: everything that is read lies within them, and what was
// skipped can be written again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/growing.h"

namespace {

void fields(std::string_view bytes) {
  std::string copy;
  baton::Encoder out(copy);
  baton::Decoder in(bytes);
  std::size_t count = 0;
  for (baton::FieldReader field(in); field.next(); ++count) {
    BATON_ASSERT(field.number() != 0);
    baton::put_field(out, field.number(), field.value().rest());
  }
  if (!in.ok()) return;
  baton::Decoder again(copy);
  baton::skip_fields(again);
  BATON_ASSERT(again.finish());
  BATON_ASSERT((count == 0) == bytes.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  fields(input);
  baton::Decoder in(input);
  while (!in.empty()) {
    const baton::FactFrame frame = baton::read_frame(in);
    if (!in.ok()) break;
    BATON_ASSERT(frame.body.data() >= input.data() &&
                 frame.body.data() + frame.body.size() <= input.data() + input.size());
    const baton::Status skipped = baton::skip_frame(frame, "machines");
    BATON_ASSERT(skipped.has_value() || skipped.error().code == baton::Errc::malformed ||
                 skipped.error().code == baton::Errc::store_too_new);
    fields(frame.body);
  }
  return 0;
}
