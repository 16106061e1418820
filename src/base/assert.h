#pragma once

namespace baton {

/// Prints the condition and its place, then aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace baton

/// For bugs, never for failures of the disk, the network or a client. On in release: a broker whose
/// state is wrong must stop before it confirms anything more.
#define BATON_ASSERT(condition)                                  \
  do {                                                           \
    if (!(condition)) [[unlikely]]                               \
      ::baton::assertion_failed(#condition, __FILE__, __LINE__); \
  } while (false)
