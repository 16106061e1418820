#include "sdk/stream/append_window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sdk/base/errors.h"
#include "sdk/stream/test_records.h"

namespace baton::client {
namespace {

using Phase = AppendWindow::Phase;

constexpr std::size_t kFrameBytes = 1024UL * 1024;
constexpr AppendWindow::Identity kFirst{ProducerId{7}, ProducerEpoch{0}};
constexpr AppendWindow::Identity kSecond{ProducerId{7}, ProducerEpoch{1}};

AppendResult stored(std::int64_t offset, std::uint32_t partition = 0) {
  return {.partition = PartitionNumber{partition}, .offset = Offset{offset}};
}
AppendResult refused(Errc code, std::uint32_t partition = 0) {
  return {.partition = PartitionNumber{partition}, .error = Error{code, "scripted"}};
}

class Window : public testing::Test {
 protected:
  /// Adds a batch of these records.
  void add(const std::vector<std::string>& values, std::uint32_t partition = 0) {
    auto batch = std::make_unique<PendingBatch>();
    batch->partition = PartitionNumber{partition};
    batch->bytes = batch_of(values, 0);
    batch->count = static_cast<std::int32_t>(values.size());
    window_.add(std::move(batch));
  }
  /// The next frame: "epoch:sequence first-value" per batch.
  std::vector<std::string> send(std::size_t bytes_max = kFrameBytes) {
    std::vector<std::string> sent;
    for (const PendingBatch* const batch : window_.next_frame(bytes_max)) {
      const BatchHeader header = BatchView::parse(batch->bytes)->header();
      sent.push_back(fmt::format("{}:{} {}", header.producer.epoch.value,
                                 header.producer.sequence.value, values_of(batch->bytes).at(0)));
    }
    return sent;
  }
  std::vector<AppendWindow::Settled> answer(const std::vector<AppendResult>& results) {
    auto settled = window_.answered(results);
    EXPECT_TRUE(settled.has_value());
    if (!settled) return {};
    return *std::move(settled);
  }

  AppendWindow window_{2, kFirst};
};

using Sent = std::vector<std::string>;

TEST_F(Window, NumbersRecordsPerPartition) {
  add({"a", "b"});
  add({"c"}, 1);
  add({"d"});
  EXPECT_EQ(send(), (Sent{"0:0 a", "0:0 c", "0:2 d"}));
  EXPECT_EQ(send(), Sent{});
}

// The broker could not tell more batches than it remembers from duplicates.
TEST_F(Window, KeepsAtMostFiveBatchesOfAPartitionInFlight) {
  for (int i = 0; i < 7; ++i) add({std::to_string(i)});
  EXPECT_EQ(send(), (Sent{"0:0 0", "0:1 1", "0:2 2", "0:3 3", "0:4 4"}));
  EXPECT_FALSE(window_.may_send(PartitionNumber{0}));
  EXPECT_TRUE(window_.may_send(PartitionNumber{1}));
  EXPECT_EQ(send(), Sent{});
  answer({stored(0), stored(1), stored(2), stored(3), stored(4)});
  EXPECT_EQ(send(), (Sent{"0:5 5", "0:6 6"}));
}

TEST_F(Window, AFrameHoldsSoManyBytesAndAtLeastOneBatch) {
  add({std::string(1'000, 'x')});
  add({std::string(1'000, 'y')});
  EXPECT_EQ(send(10).size(), 1U);
  EXPECT_EQ(send(10).size(), 1U);
}

TEST_F(Window, SendsEverythingUnconfirmedAgainAsItWas) {
  for (int i = 0; i < 3; ++i) add({std::to_string(i)});
  send();
  add({"3"});
  send();
  answer({stored(0), stored(1), stored(2)});
  add({"4"});

  window_.session_broke();

  EXPECT_EQ(send(), (Sent{"0:3 3", "0:4 4"}));
  EXPECT_EQ(window_.resent(), 1U);
  const auto settled = answer(
      {{.partition = PartitionNumber{0}, .offset = Offset{3}, .duplicate = true}, stored(4)});
  ASSERT_EQ(settled.size(), 2U);
  EXPECT_TRUE(settled[0].duplicate);
  EXPECT_EQ(settled[0].offset, Offset{3});
}

// Batches behind a refused one were not stored, and only the refused one is at fault.
TEST_F(Window, ARefusedBatchFailsAloneAndTheRestGoesOnUnderANewEpoch) {
  for (const char* value : {"a", "bad", "c"}) add({value});
  send();
  add({"d"});
  send();

  const auto settled =
      answer({stored(0), refused(Errc::invalid_argument), refused(Errc::sequence_gap)});

  ASSERT_EQ(settled.size(), 2U);
  EXPECT_FALSE(settled[0].error.has_value());
  EXPECT_EQ(settled[1].error->code, Errc::invalid_argument);
  EXPECT_EQ(window_.phase(), Phase::draining);
  add({"e"}, 1);
  EXPECT_EQ(send(), Sent{});  // Nothing new is sent before the new epoch.
  EXPECT_TRUE(answer({refused(Errc::sequence_gap)}).empty());
  ASSERT_EQ(window_.phase(), Phase::asking);
  window_.begin_epoch(kSecond);
  EXPECT_EQ(send(), (Sent{"1:0 e", "1:0 c", "1:1 d"}));
}

// A batch whose answer was lost may have been stored: under a new epoch it would be stored twice.
TEST_F(Window, WhatMayHaveBeenStoredIsClearedUpUnderTheOldEpoch) {
  add({"bad"});
  send();
  add({"x"}, 1);
  add({"y"}, 1);
  send();
  answer({refused(Errc::invalid_argument)});
  ASSERT_EQ(window_.phase(), Phase::draining);

  window_.session_broke();

  EXPECT_EQ(send(10), Sent{"0:0 x"});
  EXPECT_EQ(
      answer({{.partition = PartitionNumber{1}, .offset = Offset{0}, .duplicate = true}}).size(),
      1U);
  EXPECT_EQ(window_.phase(), Phase::draining);
  EXPECT_EQ(send(10), Sent{"0:1 y"});
  EXPECT_EQ(
      answer({{.partition = PartitionNumber{1}, .offset = Offset{1}, .duplicate = true}}).size(),
      1U);
  EXPECT_EQ(window_.phase(), Phase::asking);
}

TEST_F(Window, ABusyBrokerGetsTheSameBatchesAgainInOrder) {
  for (const char* value : {"a", "b"}) add({value});
  send();
  EXPECT_TRUE(answer({refused(Errc::unavailable), refused(Errc::sequence_gap)}).empty());
  ASSERT_EQ(window_.phase(), Phase::resting);
  EXPECT_EQ(send(), Sent{});
  window_.resume();
  EXPECT_EQ(send(), (Sent{"0:0 a", "0:1 b"}));
}

TEST_F(Window, ABrokerThatForgotTheProducerGetsANewEpochAndNotForEver) {
  add({"a"});
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(send().size(), 1U);
    EXPECT_TRUE(answer({refused(Errc::sequence_gap)}).empty());
    ASSERT_EQ(window_.phase(), Phase::asking);
    window_.begin_epoch(kSecond);
  }
  send();
  const auto settled = answer({refused(Errc::sequence_gap)});
  ASSERT_EQ(settled.size(), 1U);
  EXPECT_EQ(settled[0].error->code, Errc::sequence_gap);
}

TEST_F(Window, SaysThatTheNameIsTaken) {
  add({"a"});
  send();
  answer({refused(Errc::producer_fenced)});
  ASSERT_TRUE(window_.fenced().has_value());
}

// Without sequence numbers a refused batch leaves no hole.
TEST_F(Window, AProducerThatIsNotIdempotentJustGoesOn) {
  window_ = AppendWindow(1, std::nullopt);
  for (const char* value : {"bad", "b"}) add({value});
  EXPECT_EQ(send(), (Sent{"-1:-1 bad", "-1:-1 b"}));
  EXPECT_EQ(answer({refused(Errc::invalid_argument), stored(0)}).size(), 2U);
  EXPECT_EQ(window_.phase(), Phase::open);
}

TEST_F(Window, DoesNotTakeAnAnswerThatCannotBeOne) {
  EXPECT_FALSE(window_.answered({}).has_value());
  add({"a"});
  add({"b"});
  send();
  const std::vector<AppendResult> one{stored(0)};
  EXPECT_FALSE(window_.answered(one).has_value());
  const std::vector<AppendResult> elsewhere{stored(0), stored(1, 1)};
  EXPECT_FALSE(window_.answered(elsewhere).has_value());
  // Nothing has changed by that.
  answer({stored(0), stored(1)});
  add({"c"});
  send();
  const std::vector<AppendResult> repeated{stored(1)};
  EXPECT_FALSE(window_.answered(repeated).has_value());
  answer({stored(2)});
  EXPECT_TRUE(window_.empty());
}

TEST_F(Window, SequencesBeginAgainAfterTheGreatest) {
  // As if 2^31 - 1 records had been sent before.
  auto batch = std::make_unique<PendingBatch>();
  batch->bytes = batch_of({"a"}, 0);
  batch->count = std::numeric_limits<std::int32_t>::max();
  window_.add(std::move(batch));
  add({"b", "c"});
  add({"d"});
  EXPECT_EQ(send(), (Sent{"0:0 a", "0:2147483647 b", "0:1 d"}));
}

}  // namespace
}  // namespace baton::client
