#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace baton {

/// What went wrong, as a number: the same in the broker, on the wire and in the SDK. errc.def is
/// the list. A newer broker may send a number that is not listed there.
enum class Errc : std::uint32_t {  // NOLINT(performance-enum-size): as wide as on the wire.
#define ERRC(name, number, text) name = number,
#include <baton/errc.def>
#undef ERRC
};

/// The stable name of a code ("lease_lost"), as it goes into logs, JSON and the wire; "unknown" for
/// a number that is not in the list.
std::string_view errc_name(Errc code);
/// The sentence that explains a code.
std::string_view errc_text(Errc code);

/// What went wrong, and with what: a code for programs, a text for people that says what the code
/// cannot: the field, the limit, the file, the address. The text of a code that is not in the list
/// begins with the name that the broker gave it.
struct Error {
  Errc code = Errc::internal;
  std::string text{};

  [[nodiscard]] std::string_view name() const { return errc_name(code); }

  bool operator==(const Error&) const = default;
};

/// "lease_lost: token 3.17".
std::string to_string(const Error& error);

/// A T, or the Error that was met instead. Built on std::expected, so that `return Error{...}`
/// works.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpected(std::move(error))) {}  // NOLINT
};

using Status = Result<void>;

}  // namespace baton
