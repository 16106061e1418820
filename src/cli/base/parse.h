#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <baton/queue.h>

#include "base/parse.h"
#include "base/result.h"

/// Values as people write them on a command line, in addition to base/parse.h. Pure; every error
/// says what would be right.
namespace baton::cli {

using Milliseconds = std::chrono::milliseconds;

/// Any duration; base/parse.h also has a form with bounds.
Result<Milliseconds> parse_duration(std::string_view text);
/// Any whole number.
Result<std::uint64_t> parse_whole(std::string_view text);
/// A whole number of at least 1.
Result<std::uint64_t> parse_count(std::string_view text);
/// Messages a second: a number of at least 0.
Result<double> parse_rate(std::string_view text);
/// "message" or "byte".
Result<client::FairnessCost> parse_fairness_cost(std::string_view text);

/// A size from `min` to `max` bytes, which the error shows with units.
Result<std::uint64_t> parse_size_between(std::string_view text, std::uint64_t min,
                                         std::uint64_t max);

/// "NAME=VALUE", cut at the first equals sign.
Result<std::pair<std::string, std::string>> parse_header(std::string_view text);
/// "KEY=W", cut at the last equals sign, as keys may hold one. 0 removes the key's weight.
Result<std::pair<std::string, std::uint32_t>> parse_weight(std::string_view text);
/// "KEY=RATE/BURST", "KEY=RATE" (a burst of one second), or "KEY=off".
Result<std::pair<std::string, client::Throttle>> parse_throttle(std::string_view text);

}  // namespace baton::cli
