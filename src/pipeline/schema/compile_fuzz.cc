// Arbitrary schemas: each is compiled or refused with a reason, and a compiled one answers a set of
// documents in bounded time. Also regular expressions: RE2 accepts or refuses each translated one,
// and never crashes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "pipeline/schema/pattern.h"
#include "pipeline/schema/validator.h"

namespace {

constexpr std::array<std::string_view, 10> kDocuments = {
    "null",
    "true",
    "-12.50",
    "123456789012345678901234567890",
    "\"abc\"",
    "\"2021-11-26T06:22:19Z\"",
    "[]",
    "[1,1.0,\"a\",[1],{\"a\":{}}]",
    R"({"a":{"a":{"a":{"b":[1,2,3]}}},"b":"x","c":null})",
    R"({"foo":1,"bar":[{"foo":{"bar":[]}}],"":0})"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton::schema;                                      // NOLINT
  const std::string text(reinterpret_cast<const char*>(data), size);  // NOLINT
  const auto schema = Schema::compile(text);
  if (schema.has_value()) {
    Validator validator(*schema);
    for (const std::string_view document : kDocuments) {
      const auto violation = validator.validate(document);
      BATON_ASSERT(!violation.has_value() || violation->kind == Violation::Kind::invalid);
    }
    // A schema is a document too.
    (void)validator.validate(text);
  } else {
    BATON_ASSERT(!schema.error().text.empty());
  }
  if (text.size() <= 64) {
    const auto pattern = Pattern::compile(text);
    if (pattern.has_value()) {
      for (const std::string_view document : kDocuments) (void)pattern->matches(document);
    }
  }
  return 0;
}
