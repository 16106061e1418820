#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "pipeline/engine/test_engine.h"

// What an engine does and logs about a source, a sink or dead letters that are unavailable.
namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;
using State = flow::Breaker::State;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(EngineTest, ASourceThatIsNotThereAtTheStartIsWaitedFor) {
  source_->failing_starts = 3;
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(count_in_log("source OUT: no broker answers; waiting"), 1);
  EXPECT_EQ(count_in_log("source ok again, after "), 1);
}

TEST_F(EngineTest, ASourceThatNeverComesIsWaitedForAsLongAsItMayBe) {
  source_->failing_starts = 1'000'000;
  EngineOptions options = quick();
  options.breaker.outage_max = milliseconds(50);
  start(options);
  thread_.join();
  EXPECT_EQ(ending_.value(), Ending::outage);
}

TEST_F(EngineTest, AStopEndsTheWaitForASource) {
  source_->failing_starts = 1'000'000;
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().source.has_value(); }));
  EXPECT_EQ(stop(), Ending::drained);
}

// The engine does not wait for errors that do not pass by themselves.
TEST_F(EngineTest, ASourceThatRefusesIsAnError) {
  source_->failing_starts = 1;
  source_->start_code = Errc::failed_precondition;
  start(quick());
  thread_.join();
  ASSERT_FALSE(ending_.has_value());
  EXPECT_EQ(ending_.error().code, Errc::failed_precondition);
}

TEST_F(EngineTest, ASourceThatGoesAwayIsToldAsASinkIs) {
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_TRUE(engine_->status().is_ready());
  source_->away = true;
  EXPECT_TRUE(eventually([&] { return engine_->status().source.has_value(); }));
  EXPECT_EQ(engine_->status().source->why, "no broker answers");
  EXPECT_FALSE(engine_->status().is_ready());
  EXPECT_EQ(engine_->status().gate.state, State::closed);
  source_->away = false;
  EXPECT_TRUE(eventually([&] { return engine_->status().is_ready(); }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(count_in_log("source OUT"), 1);
  EXPECT_EQ(count_in_log("source ok again"), 1);
}

TEST_F(EngineTest, ASourceThatIsAwayForTooLongEndsIt) {
  EngineOptions options = quick();
  options.breaker.outage_max = milliseconds(50);
  start(options);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  source_->away = true;
  thread_.join();
  EXPECT_EQ(ending_.value(), Ending::outage);
}

TEST_F(EngineTest, ASinkThatGoesOutIsToldOnceAndItsReturnToo) {
  sink_.set_out(true);
  start(quick());
  EXPECT_TRUE(eventually([&] { return count_in_log("sink OUT: ") == 1; }));
  std::this_thread::sleep_for(milliseconds(50));
  sink_.set_out(false);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_TRUE(eventually([&] { return count_in_log("sink ok again, after ") == 1; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(count_in_log("sink OUT: "), 1);
}

// All lanes meet the halt, and the operator must get one line that says what to do.
TEST_F(EngineTest, AHaltIsToldOnceWithTheWayOut) {
  sink_.set_error(SinkError{ErrorClass::config, "42P01", "no such table"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return count_in_log("HALTED: 42P01: no such table") == 1; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(count_in_log("HALTED"), 1);
  EXPECT_EQ(count_in_log("kill -HUP " + std::to_string(::getpid())), 1);
  sink_.set_error(std::nullopt);
  engine_->reload(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

TEST_F(EngineTest, DeadLettersThatAreOutAreToldOnce) {
  source_->value = [](std::int64_t i) { return i % 100 == 0 ? "broken" : "good"; };
  letters_.down = true;
  start(quick());
  EXPECT_TRUE(eventually([&] { return count_in_log("dead letters OUT: ") == 1; }));
  EXPECT_TRUE(eventually([&] { return engine_->status().gate.of_letters; }));
  letters_.down = false;
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_TRUE(eventually([&] { return count_in_log("dead letters ok again") > 0; }));
  EXPECT_EQ(stop(), Ending::drained);
}

// Without work or without progress there is no rate and no estimate.
TEST_F(EngineTest, WhatStandsStillIsNotMoving) {
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_TRUE(eventually([&] { return engine_->status().moving; }));
  EXPECT_TRUE(eventually([&] { return !engine_->status().moving; }));
  EXPECT_EQ(stop(), Ending::drained);
}

// The source no longer has these records, so no other process can read them.
TEST_F(EngineTest, ARevokedPartitionKeepsWhatIsNowhereElse) {
  source_ = std::make_unique<TestSource>(1, 100);
  sink_.set_out(true);
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 100; }));
  EXPECT_TRUE(eventually([&] { return engine_->status().gate.state == State::open; }));
  source_->first = 1000;
  std::optional<std::int64_t> mark;
  std::atomic<bool> over{false};
  std::jthread rebalance([&] {
    source_->listener().revoking(0);
    mark = source_->listener().revoked(0, false);
    over = true;
  });
  EXPECT_TRUE(eventually([&] { return count_in_log("kept until they are written") == 1; }));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(over);
  sink_.set_out(false);
  rebalance.join();
  EXPECT_EQ(mark, 100);
  EXPECT_EQ(sink_.size(), 100U);
  EXPECT_EQ(engine_->counters().dropped, 0U);
  EXPECT_EQ(stop(), Ending::drained);
}

// Records that can be read again are dropped at once: keeping the membership matters more.
TEST_F(EngineTest, ARevokedPartitionLetsGoOfWhatCanBeReadAgain) {
  source_ = std::make_unique<TestSource>(1, 100);
  sink_.set_out(true);
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 100; }));
  EXPECT_TRUE(eventually([&] { return engine_->status().gate.state == State::open; }));
  source_->listener().revoking(0);
  EXPECT_EQ(source_->listener().revoked(0, false), 0);
  EXPECT_TRUE(eventually([&] { return engine_->counters().dropped == 100U; }));
  sink_.set_out(false);
  (void)stop();
}

}  // namespace
}  // namespace baton::pipeline
