#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace baton {

// Two bytes on the wire: the layers to come number theirs past 255.
enum class Errc : std::uint16_t {  // NOLINT(performance-enum-size)
#define ERRC(name, number, text) name = number,
#include "base/errc.def"
#undef ERRC
};

/// The stable name of a code ("lease_lost"), as it goes into logs, JSON and the wire.
std::string_view errc_name(Errc code);
/// The sentence that explains a code.
std::string_view errc_text(Errc code);

/// What went wrong, and with what. `text` says what the code cannot: the field, the limit, the
/// file.
struct Error {
  Errc code;
  std::string text;
};

/// "lease_lost: token 3.17".
std::string to_string(const Error& error);

/// A T, or the Error met instead. Built on std::expected, so that `return Error{...}` works.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}  // NOLINT
};

using Status = Result<void>;

}  // namespace baton

#define BATON_CONCAT_INNER(a, b) a##b
#define BATON_CONCAT(a, b) BATON_CONCAT_INNER(a, b)

/// BATON_TRY(Bytes bytes, file.read(n)): declares `bytes`, or returns the error from this function.
#define BATON_TRY(declaration, expression) \
  BATON_TRY_INNER(BATON_CONCAT(baton_try_, __LINE__), declaration, expression)
#define BATON_TRY_INNER(temporary, declaration, expression)        \
  auto temporary = (expression);                                   \
  if (!temporary.has_value()) return std::move(temporary).error(); \
  declaration = *std::move(temporary)

/// BATON_TRY_STATUS(file.sync()): returns the error from this function, if there is one.
#define BATON_TRY_STATUS(expression)                                               \
  do {                                                                             \
    auto baton_try_status = (expression);                                          \
    if (!baton_try_status.has_value()) return std::move(baton_try_status).error(); \
  } while (false)
