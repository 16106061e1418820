#include "base/fsync_mode.h"

#include <charconv>
#include <chrono>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr std::string_view kInterval = "interval:";
constexpr std::int64_t kIntervalMsMax = 60'000;

}  // namespace

Result<FsyncMode> parse_fsync_mode(std::string_view text) {
  if (text == "always") return FsyncMode{};
  if (text == "never") return FsyncMode{.kind = FsyncMode::Kind::never, .interval = {}};
  if (text.starts_with(kInterval)) {
    const std::string_view number = text.substr(kInterval.size());
    std::int64_t milliseconds = 0;
    const auto [end, failure] =
        std::from_chars(number.data(), number.data() + number.size(), milliseconds);
    if (failure == std::errc{} && end == number.data() + number.size() && milliseconds >= 1 &&
        milliseconds <= kIntervalMsMax) {
      return FsyncMode{.kind = FsyncMode::Kind::interval,
                       .interval = std::chrono::milliseconds{milliseconds}};
    }
  }
  return Error{Errc::invalid_argument,
               fmt::format("fsync is '{}'; it may be always, never, or interval:MS with 1 to {}",
                           text, kIntervalMsMax)};
}

std::string to_string(const FsyncMode& mode) {
  switch (mode.kind) {
    case FsyncMode::Kind::always: return "always";
    case FsyncMode::Kind::never: return "never";
    case FsyncMode::Kind::interval: break;
  }
  return fmt::format("{}{}", kInterval,
                     std::chrono::duration_cast<std::chrono::milliseconds>(mode.interval).count());
}

}  // namespace baton
