#pragma once

#include <cstdint>

#include "base/rows.h"
#include "base/time.h"

namespace baton {

/// How far a command got.
struct Progress {
  enum class Kind : std::uint8_t { done, needs_rows, waits };
  Kind kind = Kind::done;
  RowRange rows;  // needs_rows: read these and resume.
  Instant until;  // waits: resume then.
};

}  // namespace baton
