#include "base/latency.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// As Prometheus counts: a bound belongs to its bucket.
TEST(LatencyHistogram, CountsUpToAndIncludingEachBound) {
  LatencyHistogram histogram;
  histogram.add(Duration{0});
  histogram.add(microseconds{100});
  histogram.add(microseconds{101});
  histogram.add(seconds{9});

  const Latencies read = histogram.read();

  EXPECT_EQ(read.counts.at(0), 2U);
  EXPECT_EQ(read.counts.at(1), 1U);
  EXPECT_EQ(read.counts.back(), 1U);
  EXPECT_EQ(read.total(), 4U);
  EXPECT_EQ(read.sum, microseconds{201} + seconds{9});
}

}  // namespace
}  // namespace baton
