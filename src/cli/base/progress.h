#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::cli {

/// Shows how many items are done, on a line of standard error that is overwritten twice a second.
/// Used by one thread at a time.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `on`: whether to show anything. `total`: how many there will be, if known.
  Progress(bool on, std::optional<std::uint64_t> total) : on_(on), total_(total) {}

  /// Counts one more. Returns "12 000 of 20 000"; empty if off, or if the last line is recent.
  std::string add(Clock::time_point now);
  /// Counts one more, and shows "12 000 of 20 000 sent" when it is time.
  void show(std::string_view done);
  /// Removes the line, if there is one.
  void clear() const;

 private:
  bool on_;
  std::optional<std::uint64_t> total_;
  std::uint64_t done_ = 0;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

}  // namespace baton::cli
