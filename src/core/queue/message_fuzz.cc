// A stored message from arbitrary bytes: all its views lie within the buffer, and adding headers
// makes a readable message.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "core/queue/message.h"

namespace baton {
namespace {

void parse(std::string_view bytes) {
  const Result<MessageRef> parsed = Message::parse(bytes);
  if (!parsed.has_value()) return;
  const Message& message = **parsed;
  BATON_ASSERT(message.bytes() == bytes);
  BATON_ASSERT(message.headers().size() == message.header_count());
  BATON_ASSERT(message.has_throttle_keys() == !message.throttle_keys().empty());
  const MessageRef more = Message::with_headers(message, {{"added", "value"}}, Instant{1});
  BATON_ASSERT(more->header("added") == "value");
  BATON_ASSERT(more->payload() == message.payload());
  BATON_ASSERT(more->id() == message.id());
  BATON_ASSERT(more->throttle_keys() == message.throttle_keys());
}

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  baton::parse({reinterpret_cast<const char*>(bytes), size});  // NOLINT
  return 0;
}
