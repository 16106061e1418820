#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::cli {

/// How many things are done, on a line of standard error that is written over itself twice a
/// second. One thread's at a time.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// `on`: somebody looks on. `total`: how many there will be, if that is known.
  Progress(bool on, std::optional<std::uint64_t> total) : on_(on), total_(total) {}

  /// One more. "12 000 of 20 000"; empty while the last line is young, or when nobody looks on.
  std::string add(Clock::time_point now);
  /// One more, shown as "12 000 of 20 000 sent" when it is time to.
  void show(std::string_view done);
  /// Takes the line away, if there is one.
  void clear() const;

 private:
  bool on_;
  std::optional<std::uint64_t> total_;
  std::uint64_t done_ = 0;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

}  // namespace baton::cli
