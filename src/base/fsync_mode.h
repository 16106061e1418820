#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace baton {

/// When written data is fsynced: before it is confirmed, at an interval, or when the system likes.
struct FsyncMode {
  enum class Kind : std::uint8_t { always, interval, never };
  Kind kind = Kind::always;
  Duration interval{0};

  bool operator==(const FsyncMode&) const = default;
};

/// Reads "always", "never" or "interval:MS".
Result<FsyncMode> parse_fsync_mode(std::string_view text);
/// The text that parse_fsync_mode() reads.
std::string to_string(const FsyncMode& mode);

}  // namespace baton
