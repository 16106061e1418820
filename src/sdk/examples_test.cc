// The examples of docs/cpp-sdk.md, compiled and run against a scripted broker.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <gtest/gtest.h>

#include "sdk/queue/test_consume.h"

namespace examples {

using namespace std::chrono_literals;
namespace client = baton::client;

baton::Status create_and_send(const client::ConnectionOptions& connection) {
  auto broker = client::Broker::open(connection);
  if (!broker) return broker.error();
  client::Queue orders = broker->queue("orders");

  auto created = orders.create({.visibility_timeout = 10s, .attempts_max = 5});
  if (!created) return created.error();

  std::vector<client::NewMessage> messages;
  messages.push_back({.payload = "first", .fairness_key = "tenant-7"});
  messages.push_back({.payload = "second", .delay = 5s});
  auto results = orders.enqueue(std::move(messages));
  if (!results) return results.error();  // It is unknown what became of them.
  for (const client::EnqueueResult& result : *results) {
    if (!result.ok()) std::printf("refused: %s\n", baton::to_string(*result.error).c_str());
  }
  return {};
}

baton::Status produce(const client::Broker& broker) {
  auto producer = broker.queue("orders").producer();
  if (!producer) return producer.error();

  for (int i = 0; i < 1000; ++i) {
    client::NewMessage message;
    message.payload = std::to_string(i);
    message.dedup_id = "order-" + std::to_string(i);  // Stored exactly once, also over reconnects.
    producer->send(std::move(message), [](client::EnqueueResult result) {
      if (!result.ok()) std::printf("lost: %s\n", baton::to_string(*result.error).c_str());
    });
  }
  return producer->close(30s);  // Waits for the confirmations.
}

baton::Status consume(const client::Broker& broker, const std::atomic<bool>& enough) {
  auto consumer = broker.queue("orders").consumer(
      {.concurrency = 4}, [](client::Delivery& delivery) -> client::Outcome {
        if (delivery.message().payload.empty()) return client::Outcome::nack("empty order");
        if (delivery.lost()) return client::Outcome::release();
        return client::Outcome::ack();  // Throwing nacks with the exception's text.
      });
  if (!consumer) return consumer.error();

  while (!enough) {
    if (auto ended = consumer->wait(100ms); ended) return *ended;
  }
  return consumer->close(10s);  // Finishes what runs, releases the rest.
}

baton::Status pull(const client::Broker& broker, std::size_t count) {
  auto stream = broker.queue("orders").lease();
  if (!stream) return stream.error();

  while (count > 0) {
    auto batch = stream->next_batch(1s, count);
    if (!batch) return batch.error();
    std::vector<client::LeaseToken> done;
    for (client::LeasedMessage& message : *batch) done.push_back(std::move(message.token));
    count -= done.size();
    stream->ack(std::move(done));
  }
  return stream->close(10s);
}

}  // namespace examples

namespace baton::client {
namespace {

v1::EnqueueResponse confirm(const v1::EnqueueRequest& request) {
  v1::EnqueueResponse response;
  for (int i = 0; i < request.messages_size(); ++i) response.add_results()->set_id("id");
  return response;
}

TEST(Examples, CreateAndSend) {
  TestBroker broker;
  broker.on_create = [](const v1::CreateQueueRequest&, v1::CreateQueueResponse&) {
    return grpc::Status::OK;
  };
  broker.on_enqueue = [](const v1::EnqueueRequest& request, v1::EnqueueResponse& response) {
    response = confirm(request);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(examples::create_and_send(broker.connection()).has_value());
}

TEST(Examples, Produce) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, TestBroker::EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) call.Write(confirm(request));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(examples::produce(*Broker::open(broker.connection())).has_value());
}

TEST(Examples, ConsumeAndPull) {
  TestBroker broker;
  std::atomic<bool> enough = false;
  broker.on_consume = [&](int, TestBroker::ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a", "b"});
    while (dialog.read()) {
      dialog.answer();
      if (dialog.acks.size() == 2) enough = true;
    }
    return grpc::Status::OK;
  };
  EXPECT_TRUE(examples::consume(*Broker::open(broker.connection()), enough).has_value());
  EXPECT_TRUE(examples::pull(*Broker::open(broker.connection()), 2).has_value());
}

}  // namespace
}  // namespace baton::client
