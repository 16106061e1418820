#include "server/session/consumer_session.h"

#include <string>

#include "server/session/limits.h"
#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<ConsumerSession>;
using Outputs = std::vector<ConsumerSession::Output>;

class ConsumerSessionTest : public SessionTest {
 protected:
  ConsumerSessionTest() {
    CreateQueueCommand create;
    create.queue = "jobs";
    broker_.execute(std::move(create));
  }

  void send(int count) {
    EnqueueCommand command;
    command.queue = "jobs";
    for (int i = 0; i < count; ++i) {
      NewMessage message;
      message.payload = "job" + std::to_string(sent_++);
      command.messages.push_back(std::move(message));
    }
    broker_.execute(std::move(command));
  }
  std::unique_ptr<Connection> connect(std::optional<std::uint64_t> credit = std::nullopt) {
    auto connection =
        std::make_unique<Connection>(broker_, std::make_shared<ConsumerSession>(state_));
    say(*connection, {.start = start("jobs", credit)});
    return connection;
  }
  static AttachCommand start(const std::string& queue,
                             std::optional<std::uint64_t> credit = std::nullopt) {
    AttachCommand attach;
    attach.queue = queue;
    attach.consumer_id = "me";
    attach.credit = credit;
    return attach;
  }
  static void say(Connection& client, ConsumerSession::Request request) {
    client.request([&](ConsumerSession& session) {
      EXPECT_TRUE(session.take(std::move(request)).has_value());
    });
  }
  static void refuses(Connection& client, ConsumerSession::Request request,
                      const std::string& why) {
    client.request([&](ConsumerSession& session) {
      const Status taken = session.take(std::move(request));
      ASSERT_FALSE(taken.has_value());
      EXPECT_EQ(taken.error().code, Errc::invalid_argument);
      EXPECT_NE(taken.error().text.find(why), std::string::npos) << taken.error().text;
    });
  }
  static ConsumerItems credit(std::uint64_t messages) {
    ConsumerItems items;
    items.credit = messages;
    return items;
  }
  static std::vector<Delivery> deliveries(const Outputs& outputs) {
    std::vector<Delivery> all;
    for (const auto& output : outputs) {
      all.insert(all.end(), output.deliveries.begin(), output.deliveries.end());
    }
    return all;
  }
  static ConsumerItems ack(const std::vector<Delivery>& held) {
    ConsumerItems items;
    items.acks.command.queue = "jobs";
    items.acks.items = held.size();
    for (const Delivery& delivery : held) items.acks.command.tokens.push_back(delivery.token);
    return items;
  }
  /// The attempts that the next consumer sees tell what the end of the previous one has counted.
  std::vector<std::uint32_t> attempts_of_the_next(std::size_t count) {
    const auto next = connect();
    std::vector<std::uint32_t> attempts;
    while (attempts.size() < count) {
      for (const Delivery& delivery : deliveries(next->take(1))) {
        attempts.push_back(delivery.attempt);
      }
    }
    return attempts;
  }

  int sent_ = 0;
};

TEST_F(ConsumerSessionTest, TheFirstOutputConfirmsAndMessagesFollow) {
  send(3);
  const auto client = connect();
  const Outputs outputs = client->take(2);
  ASSERT_TRUE(outputs[0].registered.has_value());
  EXPECT_EQ(outputs[0].registered->consumer_id, "me");
  EXPECT_TRUE(outputs[0].deliveries.empty());
  EXPECT_FALSE(outputs[1].registered.has_value());
  EXPECT_EQ(outputs[1].deliveries.size(), 3U);
}

TEST_F(ConsumerSessionTest, CreditBoundsWhatIsDelivered) {
  send(5);
  const auto client = connect(2);
  EXPECT_EQ(deliveries(client->take(2)).size(), 2U);
  EXPECT_TRUE(client->now().empty());
  say(*client, {.items = credit(1)});
  EXPECT_EQ(deliveries(client->take(1)).size(), 1U);
  EXPECT_TRUE(client->now().empty());
}

TEST_F(ConsumerSessionTest, TheFirstCreditMayComeWithTheStart) {
  send(5);
  auto client = std::make_unique<Connection>(broker_, std::make_shared<ConsumerSession>(state_));
  say(*client, {.start = start("jobs", 0), .items = credit(2)});
  EXPECT_EQ(deliveries(client->take(2)).size(), 2U);
  EXPECT_TRUE(client->now().empty());
}

TEST_F(ConsumerSessionTest, CreditWithoutManualCreditIsRefused) {
  refuses(*connect(), {.items = credit(1)}, "manual_credit");
  Connection client(broker_, std::make_shared<ConsumerSession>(state_));
  refuses(client, {.start = start("jobs"), .items = credit(1)}, "manual_credit");
}

TEST_F(ConsumerSessionTest, AStartIsTheFirstRequestAndOnlyThat) {
  Connection client(broker_, std::make_shared<ConsumerSession>(state_));
  refuses(client, {}, "start is missing");
  refuses(*connect(), {.start = start("jobs")}, "only for the first");
}

TEST_F(ConsumerSessionTest, ResultsComeInTheOrderOfTheRequestsWithThoseRefusedByTheProtocol) {
  send(2);
  const auto client = connect();
  const auto held = deliveries(client->take(2));
  ASSERT_EQ(held.size(), 2U);
  ConsumerItems items = ack({held[0]});
  // The second item of the request is not a token.
  items.acks.items = 2;
  items.acks.refused.push_back({1, {Errc::lease_lost, "none"}});
  say(*client, {.items = std::move(items), .bytes = 10});
  say(*client, {.items = ack({held[0], held[1]}), .bytes = 10});
  std::vector<ConsumerSession::ItemResults> results;
  while (results.size() < 2) {
    for (const auto& output : client->take(1)) {
      results.insert(results.end(), output.results.begin(), output.results.end());
    }
  }
  EXPECT_EQ(results[0].acks.items, 2U);
  EXPECT_EQ(results[0].acks.refused.size(), 1U);
  ASSERT_EQ(results[0].acks.outcomes.size(), 1U);
  EXPECT_FALSE(results[0].acks.outcomes[0].has_value());
  ASSERT_EQ(results[1].acks.outcomes.size(), 2U);
  ASSERT_TRUE(results[1].acks.outcomes[0].has_value()) << "acked before";
  EXPECT_EQ(results[1].acks.outcomes[0]->code, Errc::lease_lost);
  EXPECT_FALSE(results[1].acks.outcomes[1].has_value());
}

TEST_F(ConsumerSessionTest, AClientThatDoesNotReadIsNotReadEither) {
  send(1);
  const auto client = connect();
  const auto held = deliveries(client->take(2));
  client->set_slow(true);
  std::size_t requests = 0;
  while (requests < 4 * limits::kStreamBatches) {
    broker_.turn();
    if (!client->is_read()) break;
    say(*client, {.items = ack(held), .bytes = 10});
    ++requests;
  }
  // One output is under way; the most allowed requests wait behind it.
  EXPECT_GE(requests, limits::kStreamBatches);
  EXPECT_LE(requests, limits::kStreamBatches + 2);
  client->set_slow(false);
  std::size_t answered = 0;
  while (answered < requests) {
    for (const auto& output : client->take(1)) answered += output.results.size();
  }
  EXPECT_EQ(answered, requests);
}

TEST_F(ConsumerSessionTest, AClosedSideGivesEverythingBackUncounted) {
  send(3);
  auto client = connect();
  EXPECT_EQ(deliveries(client->take(2)).size(), 3U);
  client->close();
  EXPECT_TRUE(client->wait_for_end().has_value());
  client.reset();
  EXPECT_EQ(attempts_of_the_next(3), std::vector<std::uint32_t>({1, 1, 1}));
}

TEST_F(ConsumerSessionTest, ABrokenConnectionCountsTheOldestThatWasWritten) {
  send(3);
  auto client = connect();
  EXPECT_EQ(deliveries(client->take(2)).size(), 3U);
  client->lose();
  EXPECT_EQ(client->wait_for_end().error().code, Errc::cancelled);
  client.reset();
  EXPECT_EQ(attempts_of_the_next(3), std::vector<std::uint32_t>({2, 1, 1}));
}

TEST_F(ConsumerSessionTest, WhatWasNeverWrittenIsNotCounted) {
  auto client = connect();
  client->take(1);
  client->set_slow(true);
  send(3);
  client->take(1);  // Under way, and never ends.
  client->lose();
  EXPECT_FALSE(client->wait_for_end().has_value());
  client.reset();
  EXPECT_EQ(attempts_of_the_next(3), std::vector<std::uint32_t>({1, 1, 1}));
}

TEST_F(ConsumerSessionTest, BehindQuiescedComesNoMessage) {
  send(1);
  const auto client = connect();
  EXPECT_EQ(deliveries(client->take(2)).size(), 1U);
  ConsumerItems quiesce;
  quiesce.quiesce = true;
  say(*client, {.items = std::move(quiesce)});
  const Outputs outputs = client->take(1);
  EXPECT_TRUE(outputs.back().quiesced);
  send(2);
  EXPECT_TRUE(deliveries(client->now()).empty());
}

TEST_F(ConsumerSessionTest, AHeartbeatIsAnsweredFirstAndItsSilenceEndsTheSession) {
  send(1);
  auto connection =
      std::make_unique<Connection>(broker_, std::make_shared<ConsumerSession>(state_));
  say(*connection, {.heartbeat = 1, .start = start("jobs")});
  const Outputs outputs = connection->take(3);
  ASSERT_TRUE(outputs[0].heartbeat.has_value());
  EXPECT_EQ(outputs[0].heartbeat->number, 1U);
  EXPECT_EQ(outputs[0].heartbeat->broker_time, broker_.now());
  EXPECT_TRUE(outputs[1].registered.has_value());

  broker_.pass(SessionTerms{}.broker_lease + std::chrono::milliseconds{1});
  EXPECT_EQ(connection->wait_for_end().error().code, Errc::unavailable);
}

TEST_F(ConsumerSessionTest, AQueueThatIsNotThereEndsIt) {
  auto connection =
      std::make_unique<Connection>(broker_, std::make_shared<ConsumerSession>(state_));
  say(*connection, {.start = start("nosuch")});
  EXPECT_EQ(connection->wait_for_end().error().code, Errc::queue_not_found);
}

}  // namespace
}  // namespace baton
