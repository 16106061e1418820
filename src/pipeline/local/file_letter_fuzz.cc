// Arbitrary bytes as a line of a file of dead letters: refused with a reason, or a letter whose
// record can be written again and is then the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "pipeline/local/file_letter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::pipeline::DeadLetter;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto letter = baton::pipeline::from_json_line(line);
  if (!letter.has_value()) {
    BATON_ASSERT(!letter.error().text.empty());
    return 0;
  }
  const std::string written = baton::pipeline::to_json_line(
      DeadLetter{.record = &letter->record, .source = "source", .pipeline = "pipeline"});
  const auto again = baton::pipeline::from_json_line(written);
  BATON_ASSERT(again.has_value());
  BATON_ASSERT(again->record.key == letter->record.key);
  BATON_ASSERT(again->record.value == letter->record.value);
  BATON_ASSERT(again->record.headers.size() == letter->record.headers.size());
  return 0;
}
