#include "server/session/enqueue_session.h"

#include <string>

#include "server/session/limits.h"
#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<EnqueueSession>;

class EnqueueSessionTest : public SessionTest {
 protected:
  EnqueueSessionTest() {
    CreateQueueCommand create;
    create.queue = "jobs";
    broker_.execute(std::move(create));
  }

  static CheckedItems<EnqueueCommand> messages(int count) {
    CheckedItems<EnqueueCommand> checked;
    checked.items = static_cast<std::size_t>(count);
    checked.command.queue = "jobs";
    for (int i = 0; i < count; ++i) {
      NewMessage message;
      message.payload = "job";
      checked.command.messages.push_back(std::move(message));
    }
    return checked;
  }
  static void send(Connection& client, CheckedItems<EnqueueCommand> checked,
                   std::size_t bytes = 10) {
    client.request([&](EnqueueSession& session) { session.take(std::move(checked), bytes); });
  }
};

TEST_F(EnqueueSessionTest, ConfirmsEachRequestInOrderWithItsRefusedItems) {
  Connection client(broker_, std::make_shared<EnqueueSession>(state_));
  CheckedItems<EnqueueCommand> mixed = messages(1);
  mixed.items = 2;
  mixed.refused.push_back({0, {Errc::invalid_argument, "too long"}});
  CheckedItems<EnqueueCommand> refused;
  refused.items = 1;
  refused.refused.push_back({0, {Errc::invalid_argument, "too long"}});
  send(client, std::move(mixed));
  send(client, std::move(refused));
  send(client, messages(3));
  const auto outputs = client.take(3);
  EXPECT_EQ(outputs[0].outcomes.size(), 1U);
  EXPECT_EQ(outputs[0].refused.size(), 1U);
  EXPECT_TRUE(outputs[1].outcomes.empty());
  EXPECT_EQ(outputs[1].refused.size(), 1U);
  EXPECT_EQ(outputs[2].outcomes.size(), 3U);
  client.close();
  EXPECT_TRUE(client.wait_for_end().has_value());
}

// The broker does nothing, so nothing is confirmed, and in the end no request is read.
TEST_F(EnqueueSessionTest, ReadsNoMoreThanItsBounds) {
  for (const std::size_t bytes : {std::size_t{10}, limits::kStreamBytes / 2}) {
    Connection client(broker_, std::make_shared<EnqueueSession>(state_));
    std::size_t requests = 0;
    for (; client.is_read() && requests < 100; ++requests) {
      client.request_without_a_turn([&](EnqueueSession& open) { open.take(messages(1), bytes); });
    }
    EXPECT_EQ(requests, bytes == 10 ? limits::kStreamBatches : 2U);
  }
}

TEST_F(EnqueueSessionTest, ABrokerThatStopsEndsItAsUnavailable) {
  Connection client(broker_, std::make_shared<EnqueueSession>(state_));
  send(client, messages(1));
  client.take(1);
  broker_.refuse();
  send(client, messages(1));
  EXPECT_EQ(client.wait_for_end().error().code, Errc::unavailable);
}

}  // namespace
}  // namespace baton
