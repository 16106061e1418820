#include <array>
#include <set>
#include <string>

#include <baton/broker.h>
#include <gtest/gtest.h>

#include "sdk/base/backoff.h"
#include "sdk/queue/test_broker.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Broker connect(const TestBroker& broker) {
  auto client = Broker::open(broker.connection());
  EXPECT_TRUE(client.has_value());
  return *std::move(client);
}

TEST(QueueHandle, SettingsSurviveTheWay) {
  TestBroker broker;
  broker.on_create = [](const v1::CreateQueueRequest& request, v1::CreateQueueResponse& response) {
    response.mutable_queue()->set_name(request.name());
    *response.mutable_queue()->mutable_settings() = request.settings();
    response.mutable_queue()->mutable_stats()->set_ready(7);
    return grpc::Status::OK;
  };
  Broker client = connect(broker);

  const auto queue =
      client.queue("orders").create({.visibility_timeout = seconds{5},
                                     .dead_letter_queue = "dead",
                                     .release_on_disconnect = false,
                                     .fairness_cost = FairnessCost::byte,
                                     .weights = {{"vip", 4}},
                                     .throttles = {{"api", {.rate = 2.5, .burst = 9}}}});

  ASSERT_TRUE(queue.has_value());
  EXPECT_EQ(queue->name, "orders");
  EXPECT_EQ(queue->stats.ready, 7U);
  EXPECT_EQ(queue->settings.visibility_timeout, milliseconds{5000});
  EXPECT_EQ(queue->settings.dead_letter_queue, "dead");
  EXPECT_EQ(queue->settings.release_on_disconnect, false);
  EXPECT_EQ(queue->settings.fairness_cost, FairnessCost::byte);
  EXPECT_FALSE(queue->settings.attempts_max.has_value());
  EXPECT_EQ(queue->settings.weights.at("vip"), 4U);
  EXPECT_EQ(queue->settings.throttles.at("api"), (Throttle{.rate = 2.5, .burst = 9}));
}

// A field that for_each_setting() leaves out would never reach the broker.
TEST(QueueHandle, EveryFieldOfTheWireIsASetting) {
  std::set<std::string> names{"weights", "throttles"};
  QueueSettings settings;
  for_each_setting(settings, [&](const char* name, const auto& /*value*/) {
    std::string field = name;
    if (field.ends_with("_ms")) field.resize(field.size() - 3);
    EXPECT_NE(v1::QueueSettings::descriptor()->FindFieldByName(field), nullptr) << name;
    names.insert(field);
  });
  EXPECT_EQ(static_cast<int>(names.size()), v1::QueueSettings::descriptor()->field_count());
}

TEST(QueueHandle, EnqueueCarriesEveryFieldAndAnswersEachMessage) {
  v1::EnqueueRequest got;
  TestBroker broker;
  broker.on_enqueue = [&](const v1::EnqueueRequest& request, v1::EnqueueResponse& response) {
    got = request;
    response.add_results()->set_id("first");
    response.add_results()->mutable_error()->set_code(105);
    return grpc::Status::OK;
  };
  Broker client = connect(broker);
  const std::array<NewMessage, 2> messages{NewMessage{.payload = "p",
                                                      .headers = {{"k", "v"}},
                                                      .fairness_key = "tenant",
                                                      .throttle_keys = {"api", "db"},
                                                      .delay = seconds{1},
                                                      .dedup_id = "once",
                                                      .expires_after = seconds{2}},
                                           NewMessage{.payload = "q"}};

  const auto results = client.queue("orders").enqueue(messages);

  ASSERT_TRUE(results.has_value());
  EXPECT_EQ((*results)[0].id, "first");
  EXPECT_EQ((*results)[1].error->code, Errc::queue_full);
  ASSERT_EQ(got.messages_size(), 2);
  EXPECT_EQ(got.queue(), "orders");
  EXPECT_EQ(got.messages(0).headers().at("k"), "v");
  EXPECT_EQ(got.messages(0).fairness_key(), "tenant");
  EXPECT_EQ(got.messages(0).throttle_keys(1), "db");
  EXPECT_EQ(got.messages(0).delay_ms(), 1000U);
  EXPECT_EQ(got.messages(0).dedup_id(), "once");
  EXPECT_EQ(got.messages(0).expires_after_ms(), 2000U);
}

TEST(QueueHandle, AListIsWalkedPageByPage) {
  TestBroker broker;
  broker.on_list = [](const v1::ListQueuesRequest& request, v1::ListQueuesResponse& response) {
    EXPECT_EQ(request.prefix(), "o");
    const std::string& token = request.page_token();
    response.add_queues()->set_name(token.empty() ? "o1" : token == "1" ? "o2" : "o3");
    response.set_next_page_token(token.empty() ? "1" : token == "1" ? "2" : "");
    return grpc::Status::OK;
  };
  Broker client = connect(broker);

  const auto queues = client.queues("o");

  ASSERT_TRUE(queues.has_value());
  ASSERT_EQ(queues->size(), 3U);
  EXPECT_EQ((*queues)[0].name, "o1");
  EXPECT_EQ((*queues)[2].name, "o3");
}

TEST(QueueHandle, AListThatFailsInTheMiddleIsAnError) {
  TestBroker broker;
  broker.on_list = [](const v1::ListQueuesRequest& request, v1::ListQueuesResponse& response) {
    response.set_next_page_token("1");
    return request.page_token().empty()
               ? grpc::Status::OK
               : refusal(grpc::StatusCode::INVALID_ARGUMENT, 1, "invalid_argument");
  };
  EXPECT_EQ(connect(broker).queues().error().code, Errc::invalid_argument);
  // A broker that leads in a circle.
  broker.on_list = [](const v1::ListQueuesRequest&, v1::ListQueuesResponse& response) {
    response.set_next_page_token("1");
    return grpc::Status::OK;
  };
  EXPECT_EQ(connect(broker).queues().error().code, Errc::internal);
}

TEST(QueueHandle, AnswersEachAck) {
  TestBroker broker;
  broker.on_ack = [](const v1::AckRequest& request, v1::AckResponse& response) {
    for (const auto& token : request.lease_tokens()) {
      auto& result = *response.add_results();
      if (token == "late") set_lease_lost(result);
    }
    return grpc::Status::OK;
  };
  Broker client = connect(broker);
  const std::array<LeaseToken, 2> tokens{LeaseToken{"good"}, LeaseToken{"late"}};

  const auto results = client.queue("orders").ack(tokens);

  ASSERT_TRUE(results.has_value());
  EXPECT_TRUE((*results)[0].has_value());
  EXPECT_EQ((*results)[1].error().code, Errc::lease_lost);
  EXPECT_EQ(to_string((*results)[1].error()),
            "lease_lost: the lease ended before the request arrived");
}

TEST(QueueHandle, ARefusedCallCarriesTheBrokersError) {
  TestBroker broker;
  broker.on_create = [](const v1::CreateQueueRequest&, v1::CreateQueueResponse&) {
    return refusal(grpc::StatusCode::ALREADY_EXISTS, 103, "queue_exists");
  };
  Broker client = connect(broker);

  const auto queue = client.queue("orders").create();

  ASSERT_FALSE(queue.has_value());
  EXPECT_EQ(queue.error().code, Errc::queue_exists);
  EXPECT_EQ(queue.error().name(), "queue_exists");
  EXPECT_EQ(queue.error().text, "scripted queue_exists");
}

// A newer broker may use a code that this SDK does not know. Its number must not be taken for one
// that the SDK knows, and its name is what explains it.
TEST(QueueHandle, ACodeThatIsNotInTheListKeepsItsNumberAndName) {
  constexpr std::uint32_t kNumber = (1U << 16U) + 103;  // In 16 bits, queue_exists.
  TestBroker broker;
  broker.on_create = [](const v1::CreateQueueRequest&, v1::CreateQueueResponse&) {
    return refusal(grpc::StatusCode::ALREADY_EXISTS, kNumber, "queue_frozen");
  };
  Broker client = connect(broker);

  const auto queue = client.queue("orders").create();

  ASSERT_FALSE(queue.has_value());
  EXPECT_EQ(queue.error().code, static_cast<Errc>(kNumber));
  EXPECT_EQ(queue.error().text, "queue_frozen: scripted queue_frozen");
  EXPECT_EQ(to_string(queue.error()), "queue_frozen: scripted queue_frozen");
}

TEST(QueueHandle, SaysWhomItCannotReachAndWhy) {
  auto client = Broker::open({.address = "127.0.0.1:1"});
  ASSERT_TRUE(client.has_value());

  const auto queue = client->queue("orders").describe();

  ASSERT_FALSE(queue.has_value());
  EXPECT_EQ(queue.error().code, Errc::unavailable);
  EXPECT_EQ(queue.error().text, "cannot reach the broker at 127.0.0.1:1: connection refused");
  EXPECT_EQ(client->wait_until_ready(milliseconds{1}).error().code, Errc::unavailable);
}

TEST(QueueHandle, ADeadlineEndsACall) {
  Gate over;
  TestBroker broker;
  broker.on_create = [&](const v1::CreateQueueRequest&, v1::CreateQueueResponse&) {
    EXPECT_TRUE(over.wait());
    return grpc::Status::OK;
  };
  ConnectionOptions options = broker.connection();
  options.deadline = milliseconds{20};
  auto client = Broker::open(options);
  ASSERT_TRUE(client.has_value());

  const auto queue = client->queue("orders").create();

  over.open();
  ASSERT_FALSE(queue.has_value());
  EXPECT_EQ(queue.error().code, Errc::deadline_exceeded);
}

TEST(QueueHandle, RefusesBadOptions) {
  const auto code = [](ConnectionOptions options) {
    return Broker::open(std::move(options)).error().code;
  };
  for (const char* address : {"", "host", ":1", "host:", "host:0", "host:70000", "host:12x"}) {
    EXPECT_EQ(code({.address = address}), Errc::invalid_argument) << address;
  }
  EXPECT_EQ(code({.tls = TlsOptions{.ca_file = "no/such/file.pem"}}), Errc::invalid_argument);
  EXPECT_EQ(code({.tls = TlsOptions{.certificate_file = "only.pem"}}), Errc::invalid_argument);
  EXPECT_EQ(code({.reconnect_min = milliseconds{0}}), Errc::invalid_argument);
}

TEST(Backoff, DoublesUpToItsMaximumLessAFifth) {
  Backoff backoff(milliseconds{100}, milliseconds{1000}, 1);
  for (const int expected : {100, 200, 400, 800, 1000, 1000}) {
    const auto wait = backoff.next();
    EXPECT_LE(wait, milliseconds{expected});
    EXPECT_GE(wait, milliseconds{expected} * 4 / 5 - milliseconds{1});
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), milliseconds{100});
}

}  // namespace
}  // namespace baton::client
