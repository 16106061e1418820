// Documents from arbitrary bytes: what a decoder accepts must encode to a document that means the
// same. Keys as well. The fast reader of assignments must agree with the JSON reader.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/workers/assignment_text.h"
#include "core/workers/documents.h"
#include "core/workers/names.h"

namespace {

template <class Decode>
void round_trip(std::string_view bytes, Decode decode) {
  const auto document = decode(bytes);
  if (!document.has_value()) return;
  const auto again = decode(baton::partition::encode(*document));
  BATON_ASSERT(again.has_value());
  BATON_ASSERT(*again == *document);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace partition = baton::partition;
  const std::string bytes(reinterpret_cast<const char*>(data), size);  // NOLINT
  round_trip(bytes, partition::decode_session);
  round_trip(bytes, partition::decode_assignment);
  if (const auto assignment = partition::read_as_written(bytes)) {
    BATON_ASSERT(partition::decode_assignment_of_any_form(bytes).value() == *assignment);
  }
  if (const auto session = partition::session_of_key("g", bytes)) {
    BATON_ASSERT(partition::session_key("g", *session) == bytes);
  }
  if (const auto chunk = partition::chunk_of_key("g", bytes)) {
    BATON_ASSERT(partition::assignment_key("g", *chunk) == bytes);
  }
  return 0;
}
