#pragma once

#include <string>
#include <utility>

#include <baton/result.h>  // IWYU pragma: export

namespace baton {

/// What somebody gave cannot be taken; the text names it and says what can.
inline Error invalid_argument(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

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
