#include "server/session/subscription_session.h"

#include <algorithm>
#include <string>

#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<SubscriptionSession>;
namespace Kinds = subscription;

class SubscriptionSessionTest : public SessionTest {
 protected:
  SubscriptionSessionTest() {
    CreateStreamCommand create;
    create.stream = "s";
    broker_.execute(std::move(create));
  }

  void append(int records) {
    for (int i = 0; i < records; ++i) {
      AppendCommand command;
      command.stream = "s";
      NewRecord record;
      record.value = "v" + std::to_string(appended_++);
      command.records.push_back(std::move(record));
      broker_.execute(std::move(command));
    }
  }
  std::unique_ptr<Connection> connect() {
    return std::make_unique<Connection>(broker_, std::make_shared<SubscriptionSession>(state_));
  }
  static Kinds::Request start(const std::string& group, bool single_active,
                              std::uint64_t batches = 100) {
    Kinds::Wanted wanted;
    wanted.id = SubscriptionId{1};
    wanted.command.stream = "s";
    wanted.command.group = group;
    wanted.command.single_active = single_active;
    wanted.credit = {.batches = batches, .bytes = 1 << 20};
    Kinds::Request request;
    request.starts.push_back({.id = wanted.id, .wanted = std::move(wanted)});
    return request;
  }
  static void say(Connection& client, Kinds::Request request) {
    client.request(
        [&](SubscriptionSession& session) { EXPECT_TRUE(session.take(request).has_value()); });
  }
  /// All outputs of this kind, until there are `count`.
  template <class Kind>
  static std::vector<Kind> hear(Connection& client, std::size_t count) {
    std::vector<Kind> heard;
    while (heard.size() < count && !testing::Test::HasFailure()) {
      for (const Kinds::Output& output : client.take(1)) {
        for (const Kinds::Said& said : output) {
          if (const auto* kind = std::get_if<Kind>(&said)) heard.push_back(*kind);
        }
      }
    }
    return heard;
  }
  static std::uint64_t count_batches(const std::vector<Kinds::Output>& outputs) {
    std::uint64_t count = 0;
    for (const Kinds::Output& output : outputs) {
      for (const Kinds::Said& said : output) {
        if (const auto* batch = std::get_if<Kinds::Batches>(&said)) {
          count += batch->chunk.batch_count;
        }
      }
    }
    return count;
  }

  int appended_ = 0;
};

TEST_F(SubscriptionSessionTest, DeliversFromTheStartAndWhatComes) {
  append(2);
  const auto client = connect();
  say(*client, start("", false));
  const auto started = hear<Kinds::Started>(*client, 1);
  EXPECT_EQ(started.at(0).partitions.size(), 1U);
  append(1);
  std::int64_t next = 0;
  while (next < 3) next = hear<Kinds::Batches>(*client, 1).back().chunk.next.value;
  EXPECT_EQ(next, 3);
}

TEST_F(SubscriptionSessionTest, NeverMoreBatchesThanCredit) {
  append(5);
  const auto client = connect();
  say(*client, start("", false, 2));
  std::uint64_t batches = 0;
  while (batches < 2) batches += count_batches(client->take(1));
  EXPECT_EQ(batches, 2U);
  for (int i = 0; i < 20; ++i) batches += count_batches(client->now());
  EXPECT_EQ(batches, 2U);
  Kinds::Request more;
  more.credits.push_back({.id = SubscriptionId{1}, .credit = {.batches = 3, .bytes = 1 << 20}});
  say(*client, std::move(more));
  while (batches < 5) batches += count_batches(client->take(1));
  EXPECT_EQ(batches, 5U);
}

TEST_F(SubscriptionSessionTest, ASeatMovesAfterTheStepDownIsAnsweredAndGoesOnFromTheOffset) {
  append(3);
  const auto first = connect();
  say(*first, start("g", true));
  const auto active = hear<Kinds::Update>(*first, 1).at(0);
  EXPECT_TRUE(active.seat.active);
  Kinds::Request offset;
  offset.offsets.push_back({.id = SubscriptionId{1},
                            .partition = PartitionNumber{0},
                            .offset = 2,
                            .epoch = active.seat.generation});
  say(*first, std::move(offset));
  const auto stored = hear<Kinds::OffsetStored>(*first, 1).at(0);
  EXPECT_FALSE(stored.error.has_value());
  EXPECT_EQ(stored.offset, 2);

  const auto second = connect();
  say(*second, start("g", true));
  hear<Kinds::Started>(*second, 1);
  Kinds::Request leave;
  leave.unsubscribes.push_back(SubscriptionId{1});
  say(*first, std::move(leave));
  EXPECT_FALSE(hear<Kinds::Closed>(*first, 1).at(0).reason.has_value());
  const auto next = hear<Kinds::Update>(*second, 1).at(0);
  EXPECT_TRUE(next.seat.active);
  EXPECT_GT(next.seat.generation, active.seat.generation);
  ASSERT_TRUE(next.offset.has_value());
  EXPECT_EQ(next.offset->value, 2U);

  // The previous holder's epoch can no longer store an offset.
  say(*first, start("g", true));
  hear<Kinds::Started>(*first, 1);
  Kinds::Request late;
  late.offsets.push_back({.id = SubscriptionId{1},
                          .partition = PartitionNumber{0},
                          .offset = 3,
                          .epoch = active.seat.generation});
  say(*first, std::move(late));
  EXPECT_EQ(hear<Kinds::OffsetStored>(*first, 1).at(0).error->code, Errc::stale_epoch);
}

TEST_F(SubscriptionSessionTest, KindsNeverGoBackWithinAnOutput) {
  append(10);
  const auto client = connect();
  client->set_slow(true);
  // The first refusal is being written, the second one waits, and kinds of lower rank follow.
  for (int i = 0; i < 2; ++i) {
    Kinds::Request refused;
    refused.starts.push_back(
        {.id = SubscriptionId{3}, .wanted = Error{Errc::invalid_argument, "no such thing"}});
    say(*client, std::move(refused));
  }
  say(*client, start("g", true));
  client->now();
  client->set_slow(false);
  std::vector<Kinds::Output> outputs = client->take(2);
  ASSERT_GE(outputs.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<Kinds::Closed>(outputs[0].front()));
  EXPECT_TRUE(std::holds_alternative<Kinds::Started>(outputs[1].front()));
  for (const Kinds::Output& output : outputs) {
    EXPECT_TRUE(std::ranges::is_sorted(output, {}, [](const auto& one) { return one.index(); }));
  }
}

TEST_F(SubscriptionSessionTest, ARefusedStartIsClosedWithItsReason) {
  const auto client = connect();
  Kinds::Request request;
  request.starts.push_back(
      {.id = SubscriptionId{3}, .wanted = Error{Errc::invalid_argument, "no such thing"}});
  say(*client, std::move(request));
  const auto closed = hear<Kinds::Closed>(*client, 1).at(0);
  EXPECT_EQ(closed.id, SubscriptionId{3});
  EXPECT_EQ(closed.reason->code, Errc::invalid_argument);
}

TEST_F(SubscriptionSessionTest, ARequestOfTooManyItemsIsRefusedWithTheLimit) {
  const auto client = connect();
  Kinds::Request request;
  request.unsubscribes.resize(limits::kItemsPerRequest + 1);
  client->request([&](SubscriptionSession& session) {
    const Status taken = session.take(request);
    ASSERT_FALSE(taken.has_value());
    EXPECT_NE(taken.error().text.find("the limit is 100000"), std::string::npos);
  });
}

TEST_F(SubscriptionSessionTest, ALostConnectionGivesItsSeatToTheNext) {
  append(1);
  auto first = connect();
  say(*first, start("g", true));
  hear<Kinds::Update>(*first, 1);
  const auto second = connect();
  say(*second, start("g", true));
  hear<Kinds::Started>(*second, 1);
  first->lose();
  EXPECT_TRUE(hear<Kinds::Update>(*second, 1).at(0).seat.active);
}

}  // namespace
}  // namespace baton
