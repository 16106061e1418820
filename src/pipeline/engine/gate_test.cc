#include "pipeline/engine/gate.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using State = flow::Breaker::State;

class GateTest : public ::testing::Test {
 protected:
  void open_and_close() {
    gate_.open("it is gone");
    gate_.probed(std::nullopt);
    ASSERT_TRUE(gate_.wait([] { return true; }));
    gate_.succeeded();
  }

  Gate gate_{{}, {}, Random(1)};
};

TEST_F(GateTest, AnOutageIsCountedWhereItBegins) {
  gate_.open("it is gone");
  gate_.open("another lane says so too");
  gate_.probed("not yet");
  EXPECT_EQ(gate_.outages(), 1U);
  gate_.probed(std::nullopt);
  ASSERT_TRUE(gate_.wait([] { return true; }));
  gate_.failed("the trial failed");
  EXPECT_EQ(gate_.outages(), 1U) << "a trial that fails begins no other outage";
}

TEST_F(GateTest, EachOutageIsCounted) {
  open_and_close();
  open_and_close();
  EXPECT_EQ(gate_.outages(), 2U);
  EXPECT_TRUE(gate_.closed());
}

TEST_F(GateTest, LettersThatFailHideNoOutage) {
  gate_.letters_failed("the queue is full");
  EXPECT_EQ(gate_.outages(), 0U);
  EXPECT_FALSE(gate_.closed());
  open_and_close();
  EXPECT_EQ(gate_.outages(), 1U);
  EXPECT_FALSE(gate_.closed()) << "the letters still cannot be written";
  EXPECT_EQ(gate_.shown().why, "the queue is full");
  gate_.letters_over();
  EXPECT_TRUE(gate_.closed());
}

TEST_F(GateTest, AHaltIsNoOutage) {
  gate_.halt("the table is gone");
  EXPECT_EQ(gate_.outages(), 0U);
  EXPECT_EQ(gate_.shown().state, State::halted);
}

}  // namespace
}  // namespace baton::pipeline
