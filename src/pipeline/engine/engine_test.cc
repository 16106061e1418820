#include "pipeline/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline/engine/test_engine.h"

namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using flow::SinkError;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(EngineTest, EveryRecordEndsOnceAndIsCommitted) {
  source_->value = [](std::int64_t i) {
    return i % 50 == 3 ? "broken" : i % 50 == 7 ? "poison" : i % 50 == 9 ? "twice" : "good";
  };
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.size(), 3000U - 180U);
  EXPECT_EQ(letters_.size(), 120U);
  EXPECT_EQ(engine_->counters().duplicates, 60U);
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(source_->committed(p), 1000);
  EXPECT_EQ(sink_.out_of_order(), 0U);
}

TEST_F(EngineTest, TombstonesAreNoPoison) {
  source_->value = [](std::int64_t i) { return i % 2 == 0 ? "" : "good"; };
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->counters().ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(engine_->counters().filtered, 1500U);
  EXPECT_EQ(sink_.size(), 1500U);
  EXPECT_EQ(letters_.size(), 0U);
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(source_->committed(p), 1000);
}

// Records may have no key, or another key than their document.
TEST_F(EngineTest, WhatEndsBadlyIsLoggedByTheKeyOfItsDocument) {
  source_ = std::make_unique<TestSource>(1, 20);
  source_->value = [](std::int64_t i) {
    return i == 5 ? "twice" : i == 9 ? "poison" : i == 14 ? "broken" : "good";
  };
  std::mutex mutex;
  std::string lines;
  EngineOptions options = quick();
  options.log = [&](bool, const std::string& line) {
    const std::scoped_lock lock(mutex);
    lines += line + "\n";
  };
  start(options);
  EXPECT_TRUE(eventually([&] { return ended() == 20; }));
  EXPECT_EQ(stop(), Ending::drained);
  for (const char* line : {"duplicate: key 'order-5', partition 0, offset 5\n",
                           "dead letter: key 'order-9', partition 0, offset 9: too long\n",
                           "dead letter: key 'key0', partition 0, offset 14: broken\n"}) {
    EXPECT_NE(lines.find(line), std::string::npos) << line << lines;
  }
}

TEST_F(EngineTest, AnOutageLosesNothingAndFillsNoDeadLetters) {
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() > 300; }));
  sink_.set_error(SinkError{ErrorClass::outage, "", "connection refused"});
  EXPECT_TRUE(eventually([&] { return !engine_->status().gate.why.empty(); }));
  EXPECT_TRUE(eventually([&] { return source_->pauses > 0 && sink_.probes > 3; }));
  EXPECT_LE(engine_->status().window_records, 200U);
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.size(), 3000U);
  EXPECT_EQ(letters_.size(), 0U);
  EXPECT_EQ(sink_.out_of_order(), 0U);
}

TEST_F(EngineTest, AProbeThatLiesClosesNothing) {
  sink_.probe_lies = true;  // A read-only database answers SELECT 1.
  sink_.set_error(SinkError{ErrorClass::outage, "25006", "read-only"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return sink_.probes > 10; }));
  EXPECT_EQ(ended(), 0U);
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

TEST_F(EngineTest, AnUnknownErrorOfOneRecordIsPoisonInTheEnd) {
  source_->value = [](std::int64_t i) { return i == 500 ? "odd" : "good"; };
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.ids(), (std::set<std::string>{"p/s/0/500", "p/s/1/500", "p/s/2/500"}));
}

TEST_F(EngineTest, AConfigErrorWaitsForAReload) {
  sink_.set_error(SinkError{ErrorClass::config, "42P01", "no such table"});
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  EXPECT_EQ(letters_.size(), 0U);
  sink_.set_error(std::nullopt);
  engine_->reload(quick());
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
}

TEST_F(EngineTest, DeadLettersThatCannotBeWrittenAreWaitedFor) {
  source_->value = [](std::int64_t i) { return i == 100 ? "broken" : "good"; };
  letters_.down = true;
  start(quick());
  EXPECT_TRUE(eventually([&] { return ended() > 200; }));
  std::this_thread::sleep_for(milliseconds(50));
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_LE(source_->committed(p), 100);
  letters_.down = false;
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 3U);
}

// Waiting would not help: an operator must look, and the log names the record.
TEST_F(EngineTest, ADeadLetterThatIsRefusedForGoodHalts) {
  source_->value = [](std::int64_t i) {
    return i == 500 ? "broken" : i == 501 ? "broken, and too long" : "good";
  };
  letters_.bytes_max = 10;
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  const std::string why = engine_->status().gate.why;
  EXPECT_NE(why.find("offset 501 ("), std::string::npos) << why;
  EXPECT_NE(why.find("refused by memory, for good: invalid_argument: too long"), std::string::npos)
      << why;
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_LE(source_->committed(p), 501);
  engine_->reload(quick());  // Nothing was repaired.
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::halted; }));
  letters_.bytes_max = 1000;
  EXPECT_TRUE(eventually([&] {
    engine_->reload(quick());
    return ended() == 3000;
  }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(letters_.size(), 6U);
}

TEST_F(EngineTest, AnOutageThatIsTooLongEndsInAnOrderlyWay) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  EngineOptions options = quick();
  options.breaker.outage_max = milliseconds(50);
  start(options);
  thread_.join();
  EXPECT_EQ(ending_.value(), Ending::outage);
  EXPECT_EQ(letters_.size(), 0U);
  for (std::uint32_t p = 0; p < 3; ++p) EXPECT_EQ(source_->committed(p), 0);
}

// A call that hangs must not hide from other threads why the run ends.
TEST_F(EngineTest, AnOutageThatIsTooLongIsKnownWhileACallHangs) {
  std::atomic<bool> stuck{true};
  sink_.before_write = [&](std::span<const Item> items) -> MemorySink::MaybeError {
    if (items.front().record.partition != 0) return SinkError{ErrorClass::outage, "", "gone"};
    EXPECT_TRUE(eventually([&] { return !stuck; }));
    return SinkError{ErrorClass::outage, "", "gone"};
  };
  sink_.set_out(true);
  EngineOptions options = quick();
  options.order = Order::partition;
  options.window_records = 3000;  // The call that hangs must not block the others.
  options.lanes = 3;
  options.breaker.outage_max = milliseconds(50);
  start(options);
  EXPECT_TRUE(eventually([&] { return engine_->early_end() == Ending::outage; }));
  stuck = false;
  thread_.join();
  EXPECT_EQ(ending_.value(), Ending::outage);
}

TEST_F(EngineTest, ARevokedPartitionStopsWaitingAtOnce) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 200; }));
  const auto before = std::chrono::steady_clock::now();
  engine_->revoking(1);
  EXPECT_EQ(engine_->revoked(1, false), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(1));
  EXPECT_TRUE(eventually([&] { return source_->over == 1; }));
  // The partition comes back under a new assignment: records delivered under the old one are not
  // written.
  engine_->assigned(1, 99, 0);
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return sink_.size() >= 2000; }));
  stop();
  EXPECT_EQ(sink_.contiguous(0), 1000);
  EXPECT_EQ(sink_.contiguous(2), 1000);
  EXPECT_EQ(sink_.size(), 2000U);
}

// The next owner of the partition writes it.
TEST_F(EngineTest, WhatWentWithItsPartitionIsNotLeftOpen) {
  source_ = std::make_unique<TestSource>(2, 100);
  sink_.set_out(true);
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->left_open() == 200; }));
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state != flow::Breaker::State::closed; }));
  engine_->revoking(1);
  EXPECT_EQ(engine_->revoked(1, false), 0);
  sink_.set_out(false);
  EXPECT_TRUE(eventually([&] { return sink_.contiguous(0) == 100; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(engine_->counters().dropped, 100U);
  EXPECT_EQ(engine_->left_open(), 0U);
}

TEST_F(EngineTest, WhatIsNotDrainedIsLeftOpen) {
  sink_.set_out(true);
  start(quick());
  EXPECT_TRUE(eventually([&] { return engine_->status().window_records == 200; }));
  EXPECT_EQ(stop(), Ending::undrained);
  EXPECT_EQ(engine_->left_open(), 200U);
}

// The one batch that the half-open breaker lets through is too large: no lane may wait for it for
// ever.
TEST_F(EngineTest, ATrialThatMustBeHalvedIsNoEnd) {
  sink_.set_error(SinkError{ErrorClass::outage, "", "gone"});
  EngineOptions options = quick();
  options.lane.linger = milliseconds(50);  // So that no lane starts with a batch of one record.
  start(options);
  EXPECT_TRUE(eventually([&] {
    const EngineStatus status = engine_->status();
    return status.window_records == 200 && status.gate.state == flow::Breaker::State::open;
  }));
  sink_.halve_above = 1;
  sink_.set_error(std::nullopt);
  EXPECT_TRUE(eventually([&] { return ended() == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.out_of_order(), 0U);
}

// The partition goes at the moment when its lane may try: the trial must pass to another lane.
TEST_F(EngineTest, ATrialOfOneThatIsGoneIsGivenBack) {
  constexpr std::uint32_t kPartitions = 16;
  source_ = std::make_unique<TestSource>(kPartitions, 10);
  sink_.set_out(true);
  std::atomic<bool> go{false};
  sink_.before_probe = [&] {
    if (!go.exchange(false)) return;
    for (std::uint32_t p = 1; p < kPartitions; ++p) EXPECT_EQ(engine_->revoked(p, false), 0);
    sink_.set_out(false);
  };
  EngineOptions options = quick();
  options.order = Order::partition;
  options.lanes = kPartitions;
  start(options);
  EXPECT_TRUE(eventually(
      [&] { return engine_->counters().received == 10 * kPartitions && sink_.probes > 2; }));
  go = true;
  EXPECT_TRUE(eventually([&] { return sink_.contiguous(0) == 10; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.size(), 10U);
}

// One partition's letters cannot be written, and it is revoked: the other partition's records in
// the same batch stay.
TEST_F(EngineTest, APartitionThatGoesTakesNobodyAlong) {
  source_->value = [](std::int64_t i) { return i == 5 ? "broken" : "good"; };
  letters_.down = true;
  EngineOptions options = quick();
  options.lanes = 1;
  options.workers = 1;
  start(options);
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::open; }));
  engine_->revoking(0);
  (void)engine_->revoked(0, false);
  letters_.down = false;
  EXPECT_TRUE(eventually([&] {
    return sink_.contains({1, 999}) && sink_.contains({2, 999}) &&
           engine_->status().gate.state == flow::Breaker::State::closed;
  }));
  EXPECT_TRUE(
      eventually([&] { return source_->committed(1) == 1000 && source_->committed(2) == 1000; }));
  stop();
}

// The only lane that waited for the dead letters has given up: nothing is unavailable any more.
TEST_F(EngineTest, LettersNobodyWaitsForAreNoOutage) {
  source_ = std::make_unique<TestSource>(1, 100);
  source_->value = [](std::int64_t i) { return i == 5 ? "broken" : "good"; };
  letters_.down = true;
  start(quick());
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::open; }));
  engine_->revoking(0);
  (void)engine_->revoked(0, false);
  EXPECT_TRUE(
      eventually([&] { return engine_->status().gate.state == flow::Breaker::State::closed; }));
  stop();
}

class Lingering : public EngineTest {
 protected:
  static EngineOptions patient() {
    EngineOptions options = quick();
    options.window_records = 3000;
    options.lane.linger = std::chrono::minutes(10);
    return options;
  }
};

// The batches are not full, and no further records can fill them.
TEST_F(Lingering, EndsWithADrain) {
  start(patient());
  EXPECT_TRUE(eventually([&] { return engine_->counters().received == 3000; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(sink_.size(), 3000U);
}

TEST_F(Lingering, EndsWithARevoke) {
  start(patient());
  EXPECT_TRUE(eventually([&] { return engine_->counters().received == 3000; }));
  engine_->revoking(1);
  EXPECT_EQ(engine_->revoked(1, false), 1000);
  EXPECT_EQ(sink_.contiguous(1), 1000);
  stop();
}

TEST_F(Lingering, EndsWhenTheWindowIsFull) {
  EngineOptions options = patient();
  options.window_records = 50;
  start(options);
  EXPECT_TRUE(eventually([&] { return sink_.size() >= 2500; }));
  EXPECT_EQ(stop(), Ending::drained);
}

class SlowKey : public EngineTest, public ::testing::WithParamInterface<std::string> {};

// The first record of its lane never finishes, or fails again and again. Only the records behind it
// in that lane wait.
TEST_P(SlowKey, AtTheHeadKeepsNoOtherLaneWaiting) {
  std::atomic<bool> stuck{true};
  sink_.before_write = [&](std::span<const Item> items) -> MemorySink::MaybeError {
    const bool slow = std::ranges::any_of(items, [](const Item& item) {
      return item.record.partition == 0 && item.record.offset == 20;
    });
    if (!slow || !stuck) return std::nullopt;
    if (GetParam() == "fails") return SinkError{ErrorClass::retry, "55P03", "locked"};
    EXPECT_TRUE(eventually([&] { return !stuck; }));
    return std::nullopt;
  };
  EngineOptions options = quick();
  options.order = Order::partition;
  options.lanes = 3;
  options.window_records = 500;
  source_->records_of_first = 300;
  start(options);
  EXPECT_TRUE(
      eventually([&] { return source_->committed(1) == 1000 && source_->committed(2) == 1000; }));
  EXPECT_LE(source_->committed(0), 20);
  EXPECT_LE(sink_.contiguous(0), 20);
  EXPECT_EQ(letters_.size(), 0U);
  stuck = false;
  EXPECT_TRUE(eventually([&] { return ended() == 2300; }));
  EXPECT_EQ(stop(), Ending::drained);
  EXPECT_EQ(source_->committed(0), 300);
  EXPECT_EQ(letters_.size(), 0U);
  EXPECT_EQ(sink_.out_of_order(), 0U);
}
INSTANTIATE_TEST_SUITE_P(How, SlowKey, ::testing::Values("hangs", "fails"),
                         [](const auto& kind) { return kind.param; });

// With any number of partitions, the drain waits for unfinished records once.
TEST_F(EngineTest, ADrainHasOneDeadline) {
  source_ = std::make_unique<TestSource>(8, 50);
  sink_.set_error(SinkError{ErrorClass::retry, "40P01", "deadlock"});
  EngineOptions options = quick();
  options.window_records = 1000;
  // The gate stays closed, so that there is something to wait for.
  options.lane.retries = 1'000'000;
  options.breaker.window_calls = 1'000'000;
  options.drain = milliseconds(500);
  start(options);
  EXPECT_TRUE(eventually([&] { return engine_->counters().received == 400; }));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(stop(), Ending::undrained);
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_GE(took, milliseconds(490));
  EXPECT_LT(took, milliseconds(2000));
  for (std::uint32_t p = 0; p < 8; ++p) EXPECT_EQ(source_->committed(p), 0);
  EXPECT_EQ(letters_.size(), 0U);
}

// Each call to an unavailable sink may take as long as its timeout.
TEST_F(EngineTest, ASinkThatIsOutIsAskedForOnePartitionAtATime) {
  constexpr std::uint32_t kPartitions = 20;
  source_ = std::make_unique<TestSource>(0, 0);
  std::atomic<std::uint32_t> asking{0};
  // So that all of them ask at once, if they can.
  sink_.before_claim = [&] { EXPECT_TRUE(eventually([&] { return asking == kPartitions; })); };
  const auto ask_for_all = [&] {
    asking = 0;
    std::atomic<std::uint32_t> granted{0};
    std::vector<std::jthread> threads;
    for (std::uint32_t p = 0; p < kPartitions; ++p) {
      threads.emplace_back([&, p] {
        ++asking;
        if (engine_->assigned(p, 1, 0).has_value()) ++granted;
      });
    }
    threads.clear();
    return granted.load();
  };
  sink_.set_out(true);
  EngineOptions options = quick();
  options.exactly_once = true;
  start(options);
  EXPECT_EQ(ask_for_all(), 0U);
  EXPECT_TRUE(eventually([&] { return sink_.probes > 3; }));
  EXPECT_EQ(ask_for_all(), 0U);
  EXPECT_EQ(sink_.claims, 1);
  // A successful probe lets one call through, not twenty.
  sink_.probe_lies = true;
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(ask_for_all(), 0U);
    return sink_.claims > 3;
  }));
  EXPECT_LE(sink_.claims, 1 + sink_.probes);
  sink_.set_out(false);
  EXPECT_TRUE(eventually([&] { return ask_for_all() == kPartitions; }));
  stop();
}

}  // namespace
}  // namespace baton::pipeline
