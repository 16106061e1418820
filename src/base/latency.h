#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace baton {

/// Upper bounds of the buckets of every latency histogram: from the time of a memory access to what
/// a person would call hanging.
inline constexpr std::array<Duration, 14> kLatencyBounds = {
    std::chrono::microseconds{100}, std::chrono::microseconds{250},  std::chrono::microseconds{500},
    std::chrono::milliseconds{1},   std::chrono::microseconds{2500}, std::chrono::milliseconds{5},
    std::chrono::milliseconds{10},  std::chrono::milliseconds{25},   std::chrono::milliseconds{50},
    std::chrono::milliseconds{100}, std::chrono::milliseconds{250},  std::chrono::milliseconds{500},
    std::chrono::seconds{1},        std::chrono::seconds{5}};

/// How many took up to each bound; the last entry: how many took longer. Not cumulative.
struct Latencies {
  std::array<std::uint64_t, kLatencyBounds.size() + 1> counts{};
  Duration sum{0};

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t out = 0;
    for (const std::uint64_t count : counts) out += count;
    return out;
  }
};

/// Counts how long things take. Any number of threads add and read; a reader may see an addition
/// in part.
class LatencyHistogram {
 public:
  void add(Duration took) {
    const auto bound = std::ranges::lower_bound(kLatencyBounds, took);
    const auto bucket = static_cast<std::size_t>(bound - kLatencyBounds.begin());
    counts_.at(bucket).fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  }
  [[nodiscard]] Latencies read() const {
    Latencies out;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      out.counts.at(i) = counts_.at(i).load(std::memory_order_relaxed);
    }
    out.sum = Duration{sum_ns_.load(std::memory_order_relaxed)};
    return out;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kLatencyBounds.size() + 1> counts_{};
  std::atomic<std::int64_t> sum_ns_{0};
};

}  // namespace baton
