#include <chrono>

#include <gtest/gtest.h>

#include "pipeline/engine/engine.h"
#include "pipeline/engine/test_engine.h"

// Occasional poison, and poison without end.
namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

TEST_F(EngineTest, AStormHaltsBeforeItFlushesEverything) {
  source_->value = [](std::int64_t) { return "broken"; };
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  EXPECT_LE(letters_.size(), 100U);
  engine_->reload(quick());
  EXPECT_TRUE(eventually([&] { return letters_.size() > 100; }));
  EXPECT_EQ(stop(), Ending::undrained);
}

TEST_F(EngineTest, AfterAStormTheGoodOnesGoOn) {
  source_->value = [](std::int64_t i) { return i < 150 ? "broken" : "good"; };
  EngineOptions options = quick();
  options.lanes = 1;  // With one lane, no other lane ends the trial of a waiting one.
  start(options);
  for (int reloads = 0; reloads < 8 && ended() < 3000; ++reloads) {
    EXPECT_TRUE(eventually([&] {
      return engine_->status().gate.state == flow::Breaker::State::halted || ended() == 3000;
    }));
    engine_->reload(options);
  }
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 450U);
}

// A few percent of poison in large batches is not a storm, however the poison is spread over lanes.
TEST_F(EngineTest, PoisonAmongGoodOnesIsNoStorm) {
  source_->value = [](std::int64_t i) { return i % 20 == 3 ? "broken" : "good"; };
  EngineOptions options = quick();
  options.window_records = 10'000;
  options.lane.batch_records = 10'000;
  options.lane.linger = milliseconds(200);
  options.storm.in_a_row = 20;
  start(options);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

// The sink reports poison late: poison of an earlier batch must not count as directly before it.
TEST_F(EngineTest, PoisonOfTheSinkAmongGoodOnesIsNoStorm) {
  source_->value = [](std::int64_t i) { return i % 20 == 3 ? "poison" : "good"; };
  EngineOptions options = quick();
  options.window_records = 10'000;
  options.lane.batch_records = 10'000;
  options.lane.linger = milliseconds(200);
  options.storm.in_a_row = 20;
  start(options);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; })) << engine_->status().gate.why;
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 150U);
}

class SinkStorm : public EngineTest, public ::testing::WithParamInterface<std::size_t> {};

// That records can be decoded does not make them good.
TEST_P(SinkStorm, OfTheSinkHaltsBeforeItFlushesEverything) {
  source_->value = [](std::int64_t) { return "poison"; };
  EngineOptions options = quick();
  options.lane.batch_records = GetParam();
  start(options);
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  EXPECT_LE(letters_.size(), 99U);
  // Letters of a batch that is not finished count, too.
  EXPECT_TRUE(eventually([&] { return engine_->counters().dead_letters == 99; }));
  engine_->reload(options);
  EXPECT_TRUE(eventually([&] { return letters_.size() > 99; }));
  EXPECT_EQ(stop(), Ending::undrained);
}
INSTANTIATE_TEST_SUITE_P(Batch, SinkStorm, ::testing::Values(1, 50, 500));

}  // namespace
}  // namespace baton::pipeline
