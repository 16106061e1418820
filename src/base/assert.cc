#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace baton {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "baton: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace baton
