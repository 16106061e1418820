#include "server/grpc/queue_wire.h"

#include <limits>
#include <string>

#include <baton/v1/queues.pb.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

Uuid some_id() {
  Uuid uuid;
  for (std::size_t i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<std::uint8_t>(i * 17);
  return uuid;
}

Delivery some_delivery(const NewMessage& message) {
  return {.message = Message::make(message, some_id(), {123'456'789}, Instant::never()),
          .token = {.boot = 300, .number = ~0ULL},
          .attempt = 130,
          .deadline = Instant::never()};
}

// The generated code verifies what was encoded by hand.
TEST(Wire, ADeliveryReadsBackAsItWas) {
  for (const std::size_t size : {0U, 1U, 127U, 128U, 100'000U}) {
    NewMessage message;
    message.payload = std::string(size, '\0');
    message.fairness_key = std::string(size % 300, 'f');
    message.headers = {{"a", std::string(size % 9000, 'v')}, {"b", ""}};
    message.throttle_keys = {"t1", "t2"};
    const Delivery delivery = some_delivery(message);
    std::string frame;
    append_registered(frame, "me", std::chrono::seconds{2});
    const QueueTokens tokens = TokenSeal{}.of("orders");
    append_delivery(frame, delivery, tokens);
    append_delivery(frame, some_delivery({}), tokens);
    EXPECT_LE(frame.size(), 2 * delivery_bytes(delivery) + 200);

    v1::LeaseResponse lease;
    ASSERT_TRUE(lease.ParseFromString(frame));
    v1::ConsumeResponse consume;
    ASSERT_TRUE(consume.ParseFromString(frame));

    EXPECT_EQ(lease.registered().consumer_id(), "me");
    EXPECT_EQ(consume.registered().visibility_timeout().seconds(), 2);
    ASSERT_EQ(lease.messages_size(), 2);
    ASSERT_EQ(consume.messages_size(), 2);
    const v1::LeasedMessage& out = lease.messages(0);
    EXPECT_EQ(out.SerializeAsString().size(), consume.messages(0).SerializeAsString().size());
    EXPECT_EQ(out.id(), some_id().to_string());
    EXPECT_EQ(out.payload(), message.payload);
    EXPECT_EQ(out.fairness_key(), message.fairness_key);
    EXPECT_EQ(out.headers().at("a"), message.headers[0].second);
    EXPECT_EQ(out.headers().at("b"), "");
    ASSERT_EQ(out.throttle_keys_size(), 2);
    EXPECT_EQ(out.throttle_keys(1), "t2");
    EXPECT_EQ(out.attempt(), 130U);
    EXPECT_EQ(out.enqueued_at_ns(), 123'456'789);
    EXPECT_EQ(out.lease_deadline_ns(), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(out.lease_token(), tokens.seal(delivery.token));
    EXPECT_TRUE(out.GetReflection()->GetUnknownFields(out).empty());
  }
}

TEST(Wire, AQuiescedReadsBack) {
  std::string frame;
  append_quiesced(frame);
  v1::ConsumeResponse out;
  ASSERT_TRUE(out.ParseFromString(frame));
  EXPECT_TRUE(out.quiesced());
}

TEST(Wire, ResultsReadBackInTheOrderOfTheRequest) {
  Results<ItemOutcome> results;
  results.items = 3;
  results.refused.push_back({0, {Errc::lease_lost, "odd"}});
  results.outcomes.emplace_back();
  results.outcomes.emplace_back(Error{Errc::lease_lost, "late"});
  std::string frame;
  append_results(frame, ResultField::nacks, results);

  v1::ConsumeResponse out;
  ASSERT_TRUE(out.ParseFromString(frame));

  ASSERT_EQ(out.nacks_size(), 3);
  EXPECT_EQ(out.acks_size() + out.extends_size(), 0);
  EXPECT_EQ(out.nacks(0).error().text(), "odd");
  EXPECT_FALSE(out.nacks(1).has_error());
  EXPECT_EQ(out.nacks(2).error().text(), "late");
  EXPECT_EQ(out.nacks(2).error().code(), 101U);
}

TEST(Wire, EnqueueResultsReadBack) {
  Results<EnqueueOutcome> results;
  results.items = 3;
  results.refused.push_back({1, {Errc::invalid_argument, "no"}});
  results.outcomes.push_back({.id = some_id(), .duplicate = true, .error = {}});
  results.outcomes.push_back({.id = some_id(), .duplicate = false, .error = {}});
  std::string frame;
  append_enqueued(frame, results);

  v1::EnqueueResponse out;
  ASSERT_TRUE(out.ParseFromString(frame));

  ASSERT_EQ(out.results_size(), 3);
  EXPECT_EQ(out.results(0).id(), some_id().to_string());
  EXPECT_TRUE(out.results(0).duplicate());
  EXPECT_EQ(out.results(1).error().name(), "invalid_argument");
  EXPECT_FALSE(out.results(2).duplicate());
}

}  // namespace
}  // namespace baton
