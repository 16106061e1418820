#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace baton {

/// When what was written is fsynced: before it is confirmed, or later, or when the system likes.
struct FsyncMode {
  enum class Kind : std::uint8_t { always, interval, never };
  Kind kind = Kind::always;
  Duration interval{0};

  bool operator==(const FsyncMode&) const = default;
};

/// Reads "always", "never" or "interval:MS".
Result<FsyncMode> parse_fsync_mode(std::string_view text);
/// As parse_fsync_mode() reads it.
std::string to_string(const FsyncMode& mode);

}  // namespace baton
