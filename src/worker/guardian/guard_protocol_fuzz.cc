// Any text must give a message that is the same when written and read back, or an error with a
// text.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "worker/guardian/guard_protocol.h"

namespace {

template <class Message>
void check(std::string_view text, baton::Result<Message> (*parse)(std::string_view)) {
  const auto message = parse(text);
  if (!message) {
    BATON_ASSERT(!message.error().text.empty());
    return;
  }
  const std::string written = baton::worker::encode(*message);
  BATON_ASSERT(written.size() <= baton::worker::kGuardMessageBytes);
  const auto again = parse(written);
  BATON_ASSERT(again.has_value() && *again == *message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  check(text, baton::worker::parse_guard_command);
  check(text, baton::worker::parse_guard_report);
  return 0;
}
