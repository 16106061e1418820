#include "base/logging/gate.h"

#include <chrono>

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::seconds;

TEST(LogGate, LetsOneLineThroughPerIntervalAndCountsTheRest) {
  LogGate gate(seconds{10});
  const Instant start{0};
  EXPECT_EQ(gate.pass(start), 0U);
  EXPECT_EQ(gate.pass(start), std::nullopt);
  EXPECT_EQ(gate.pass(start + seconds{9}), std::nullopt);
  EXPECT_EQ(gate.pass(start + seconds{10}), 2U);
  EXPECT_EQ(gate.pass(start + seconds{20}), 0U);
}

TEST(LogGate, LetsABurstThrough) {
  LogGate gate(seconds{1}, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(gate.pass(Instant{0}), 0U);
  EXPECT_EQ(gate.pass(Instant{0}), std::nullopt);
  EXPECT_EQ(gate.pass(Instant{0} + seconds{1}), 1U);
}

}  // namespace
}  // namespace baton
