#pragma once

namespace baton {

/// Prints where and what, then aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace baton

/// For broken code, never for a broken world. On in release: a broker whose state is wrong must
/// stop before it confirms anything more.
#define BATON_ASSERT(condition)                                  \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::baton::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
