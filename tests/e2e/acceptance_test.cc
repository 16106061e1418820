// The ten acceptance criteria of the queue story, each against the real broker. The criteria of the
// stream itself use the generated stub, so that they hold for any gRPC client and not just for
// ours.
#include <algorithm>
#include <memory>
#include <set>
#include <thread>

#include <baton/v1/queues.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

/// The `Lease` call as any client would make it.
class RawLease {
 public:
  RawLease(const BrokerProcess& broker, const std::string& queue)
      : stub_(v1::QueueService::NewStub(broker.channel())) {
    context_.set_deadline(std::chrono::system_clock::now() + seconds{60});
    v1::LeaseRequest request;
    request.set_queue(queue);
    reader_ = stub_->Lease(&context_, request);
  }

  /// Reads until `count` messages have come, or the stream ends.
  std::vector<v1::LeasedMessage> read(std::size_t count) {
    std::vector<v1::LeasedMessage> messages;
    v1::LeaseResponse response;
    while (messages.size() < count && reader_->Read(&response)) {
      for (auto& message : *response.mutable_messages()) messages.push_back(std::move(message));
    }
    return messages;
  }
  /// The first response.
  v1::LeaseResponse read_first() {
    v1::LeaseResponse response;
    EXPECT_TRUE(reader_->Read(&response));
    return response;
  }
  void cancel() { context_.TryCancel(); }
  grpc::Status finish() { return reader_->Finish(); }
  v1::QueueService::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::QueueService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::LeaseResponse>> reader_;
};

class Acceptance : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    broker_.create("orders");
  }
  void TearDown() override { EXPECT_EQ(broker_.terminate(), 0) << broker_.log(); }

  BrokerProcess broker_;
};

// Criterion 1. The stream is open before any message exists: the first response says so.
TEST_F(Acceptance, C01LeaseIsAServerStreamingCallThatConfirmsTheRegistration) {
  RawLease lease(broker_, "orders");

  const v1::LeaseResponse first = lease.read_first();

  ASSERT_TRUE(first.has_registered());
  EXPECT_FALSE(first.registered().consumer_id().empty());
  EXPECT_EQ(first.registered().visibility_timeout().seconds(), 30);
  EXPECT_EQ(first.messages_size(), 0);
  lease.cancel();
  EXPECT_EQ(lease.finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Criterion 2. Registered, and bounded: what the consumer holds un-acked never exceeds its bound.
TEST_F(Acceptance, C02TheConsumerIsRegisteredWithABoundedChannelOfItsOwn) {
  broker_.send("orders", numbered("order", 50));
  const auto bounded = open_stream(broker_, "orders", {.in_flight_max = 7});
  const auto other = open_stream(broker_, "orders", {.in_flight_max = 9});

  EXPECT_EQ(broker_.stats("orders").consumers, 2U);
  auto held = take(*bounded, 7);
  EXPECT_EQ(held.size(), 7U);
  EXPECT_EQ(take(*other, 9).size(), 9U);
  EXPECT_EQ(take(*bounded, 1, milliseconds{200}).size(), 0U);
  EXPECT_EQ(broker_.stats("orders").leased, 16U);
  EXPECT_EQ(broker_.stats("orders").ready, 34U);

  bounded->ack(held[0].token);
  EXPECT_EQ(take(*bounded, 1).size(), 1U);
}

// Criterion 3.
TEST_F(Acceptance, C03PendingMessagesAreDeliveredThroughTheStreamInOrder) {
  broker_.send("orders", numbered("before", 5));
  const auto stream = open_stream(broker_, "orders");

  EXPECT_EQ(payloads_of(take(*stream, 5)), numbered("before", 5));

  broker_.send("orders", numbered("while", 5));
  EXPECT_EQ(payloads_of(take(*stream, 5)), numbered("while", 5));
}

// Criterion 4.
TEST_F(Acceptance, C04EachMessageCarriesIdHeadersPayloadFairnessKeyAndAttempt) {
  client::NewMessage message{.payload = std::string("pay\0load", 8),
                             .headers = {{"type", "order"}, {"trace", "7"}},
                             .fairness_key = "tenant-7"};
  message.throttle_keys = {"smtp"};
  const auto sent = broker_.client().queue("orders").enqueue(std::vector{message});
  ASSERT_TRUE(sent.has_value() && sent->at(0).ok());
  RawLease lease(broker_, "orders");

  const auto messages = lease.read(1);

  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].id(), sent->at(0).id);
  EXPECT_EQ(messages[0].payload(), message.payload);
  EXPECT_EQ(messages[0].headers().at("type"), "order");
  EXPECT_EQ(messages[0].headers().at("trace"), "7");
  EXPECT_EQ(messages[0].fairness_key(), "tenant-7");
  EXPECT_EQ(messages[0].attempt(), 1U);
  EXPECT_FALSE(messages[0].lease_token().empty());
  EXPECT_GT(messages[0].lease_deadline_ns(), messages[0].enqueued_at_ns());
  ASSERT_EQ(messages[0].throttle_keys_size(), 1);
  EXPECT_EQ(messages[0].throttle_keys(0), "smtp");
}

// Criteria 5 and 6. One row each per live lease, together at every checkpoint; none for leases that
// are over.
TEST_F(Acceptance, C05C06LiveLeasesStandInLeasesAndLeaseExpiryAfterACheckpoint) {
  broker_.send("orders", numbered("order", 10));
  EXPECT_EQ(broker_.rows_after_checkpoint()["leases"], 0U);
  const auto stream = open_stream(broker_, "orders", {.in_flight_max = 6});
  const auto held = take(*stream, 6);
  ASSERT_EQ(held.size(), 6U);

  auto rows = broker_.rows_after_checkpoint();
  EXPECT_EQ(rows["leases"], 6U);
  EXPECT_EQ(rows["lease_expiry"], 6U);

  const std::vector tokens{held[0].token, held[1].token};
  const auto acked = broker_.client().queue("orders").ack(tokens);
  ASSERT_TRUE(acked.has_value());
  for (const auto& status : *acked) EXPECT_TRUE(status.has_value());
  // The next two messages take the two free places.
  ASSERT_EQ(take(*stream, 2).size(), 2U);
  rows = broker_.rows_after_checkpoint();
  EXPECT_EQ(rows["leases"], 6U);
  EXPECT_EQ(rows["lease_expiry"], 6U);

  ASSERT_TRUE(stream->close(seconds{20}).has_value());
  ASSERT_TRUE(eventually([&] { return broker_.stats("orders").leased == 0; }));
  rows = broker_.rows_after_checkpoint();
  EXPECT_EQ(rows["leases"], 0U);
  EXPECT_EQ(rows["lease_expiry"], 0U);
}

// Criteria 5 and 6, as an operator sees them, with the broker running and stopped.
TEST_F(Acceptance, C05C06StoreInspectShowsTheLeases) {
  broker_.send("orders", numbered("order", 3));
  // So that the leases outlive the consumer and the broker.
  ASSERT_EQ(
      broker_.cli({"queue", "update", "orders", "--release-on-disconnect", "false"}).exit_code, 0);
  const auto stream = open_stream(broker_, "orders");
  ASSERT_EQ(take(*stream, 3).size(), 3U);
  const auto rows = [](const CommandResult& result) {
    std::map<std::string, std::uint64_t> found;
    const auto report = nlohmann::json::parse(result.out);
    for (const auto& shard : report.at("shards")) {
      for (const auto& table : shard.at("tables")) {
        found[table.at("name")] += table.at("rows").get<std::uint64_t>();
      }
    }
    return found;
  };

  const CommandResult live = broker_.cli({"store", "inspect", "--json"});
  ASSERT_EQ(live.exit_code, 0) << live.err;
  EXPECT_EQ(rows(live)["leases"], 3U);
  EXPECT_EQ(rows(live)["lease_expiry"], 3U);

  ASSERT_EQ(broker_.terminate(), 0);
  const CommandResult still = broker_.cli({"store", "inspect", "--data", broker_.data(), "--json"});
  ASSERT_EQ(still.exit_code, 0) << still.err;
  EXPECT_EQ(rows(still)["leases"], 3U);
  EXPECT_EQ(rows(still)["lease_expiry"], 3U);
  ASSERT_TRUE(broker_.start()) << broker_.log();
}

// Criterion 7.
TEST_F(Acceptance, C07TheVisibilityTimeoutIsASettingOfTheQueueAndThirtySecondsByDefault) {
  EXPECT_EQ(broker_.client().queue("orders").describe()->settings.visibility_timeout, seconds{30});
  broker_.create("quick",
                 {.visibility_timeout = milliseconds{300}, .retry_delay = milliseconds{0}});
  broker_.send("quick", {"again"});
  const auto stream = open_stream(broker_, "quick");

  const auto first = take(*stream, 1);
  const auto began = Clock::now();
  const auto second = take(*stream, 1);

  ASSERT_EQ(first.size() + second.size(), 2U);
  EXPECT_GE(Clock::now() - began, milliseconds{200});
  EXPECT_EQ(second[0].id, first[0].id);
  EXPECT_EQ(second[0].attempt, 2U);
  EXPECT_NE(second[0].token, first[0].token);
  // Fenced: a late ack changes nothing.
  const auto late = broker_.client().queue("quick").ack(std::vector{first[0].token});
  ASSERT_FALSE(late->at(0).has_value());
  EXPECT_EQ(late->at(0).error().code, Errc::lease_lost);
}

// Criterion 8.
TEST_F(Acceptance, C08AConsumerThatDisconnectsIsUnregisteredAndItsMessagesGoOn) {
  broker_.send("orders", numbered("order", 4));
  RawLease leaving(broker_, "orders");
  ASSERT_EQ(leaving.read(4).size(), 4U);
  EXPECT_EQ(broker_.stats("orders").consumers, 1U);

  leaving.cancel();
  leaving.finish();

  EXPECT_TRUE(eventually([&] { return broker_.stats("orders").consumers == 0; }, seconds{5}));
  EXPECT_EQ(broker_.stats("orders").leased, 0U);
  RawLease next(broker_, "orders");
  const auto messages = next.read(4);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].payload(), "order-0");
}

// Criterion 9.
TEST_F(Acceptance, C09SeveralConsumersLeaseAtOnceAndEachGetsDifferentMessages) {
  std::vector<std::unique_ptr<client::LeaseStream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(open_stream(broker_, "orders"));
  broker_.send("orders", numbered("order", 200));

  std::set<std::string> seen;
  std::size_t total = 0;
  ASSERT_TRUE(eventually([&] {
    for (auto& stream : streams) {
      for (const auto& message : take(*stream, 200, milliseconds{1})) {
        seen.insert(message.id);
        ++total;
      }
    }
    return total >= 200;
  }));

  EXPECT_EQ(total, 200U);
  EXPECT_EQ(seen.size(), 200U);
  for (const auto& stream : streams) {
    // Round-robin in turns: no consumer is left out, none takes everything.
    EXPECT_GE(stream->stats().messages_received, 10U);
  }
}

// Criterion 10, to the letter.
TEST_F(Acceptance, C10TenMessagesEnqueuedAreTenMessagesReceived) {
  broker_.send("orders", numbered("order", 10));
  RawLease lease(broker_, "orders");

  const auto messages = lease.read(10);

  ASSERT_EQ(messages.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(messages[i].payload(), fmt::format("order-{}", i));
  }
}

// Criterion 10, and what a consumer does next.
TEST_F(Acceptance, C10TenMessagesAreReceivedAndAckedOnce) {
  broker_.send("orders", numbered("order", 10));
  RawLease lease(broker_, "orders");
  const auto messages = lease.read(10);
  ASSERT_EQ(messages.size(), 10U);
  v1::AckRequest request;
  request.set_queue("orders");
  for (const auto& message : messages) request.add_lease_tokens(message.lease_token());

  const auto ack = [&] {
    grpc::ClientContext context;
    v1::AckResponse response;
    EXPECT_TRUE(lease.stub().Ack(&context, request, &response).ok());
    return std::ranges::count_if(response.results(),
                                 [](const auto& result) { return !result.has_error(); });
  };

  EXPECT_EQ(ack(), 10);
  EXPECT_EQ(ack(), 0);  // Those leases are over.
  EXPECT_EQ(broker_.depth("orders"), 0U);
}

}  // namespace
}  // namespace baton::e2e
