// The examples of docs/cpp-sdk.md on streams, compiled and run against a scripted broker.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <gtest/gtest.h>

#include "sdk/stream/test_streams.h"

namespace examples {

using namespace std::chrono_literals;
namespace client = baton::client;

baton::Status create_and_append(const client::Broker& broker) {
  client::Stream events = broker.stream("events");
  auto created = events.create(3, {.retention = 7 * 24h});
  if (!created) return created.error();

  std::vector<client::NewRecord> records;
  records.push_back({.key = "user-7", .value = "signed in"});
  records.push_back({.value = "restarted", .headers = {{.name = "host", .value = "a1"}}});
  auto results = events.append(records);
  if (!results) return results.error();  // It is unknown what became of them.
  for (const client::AppendResult& result : *results) {
    if (!result.ok()) std::printf("refused: %s\n", baton::to_string(*result.error).c_str());
  }
  return {};
}

baton::Status produce_records(const client::Broker& broker) {
  auto producer =
      broker.stream("events").producer({.compression = client::RecordCompression::zstd});
  if (!producer) return producer.error();

  for (int i = 0; i < 1000; ++i) {
    client::NewRecord record{.key = "user-" + std::to_string(i % 10), .value = std::to_string(i)};
    producer->send(std::move(record), [](const client::AppendResult& result) {
      if (!result.ok()) std::printf("refused: %s\n", baton::to_string(*result.error).c_str());
    });
  }
  return producer->close(30s);  // Waits for the confirmations.
}

baton::Status read_records(const client::Broker& broker) {
  client::StreamReader reader =
      broker.stream("events").read({.from = client::StartFrom::at(baton::Offset{1})});
  while (true) {
    auto records = reader.next();  // reader.close() ends it from another thread.
    if (!records) return records.error();
    if (!*records) return {};  // The end.
    for (const client::Record& record : **records) {
      std::printf("%ld %s\n", static_cast<long>(record.offset.value), record.value->c_str());
    }
  }
}

baton::Status consume_records(const client::Broker& broker, const std::atomic<bool>& enough) {
  client::StreamConsumerOptions options;
  options.group = "billing";
  options.single_active = true;
  options.from = client::StartFrom::first();
  options.owner = "worker-1";
  options.on_active = [](const client::StreamPosition& position) {
    std::printf("partition %u is ours, epoch %lu\n", position.partition.value,
                static_cast<unsigned long>(position.epoch.value));
  };
  auto consumer = broker.stream("events").consumer(options, [](const client::RecordBatch& batch) {
    for (const client::Record& record : batch.records) {
      // batch.epoch is the fencing token for the system that this writes to.
      std::printf("%u@%ld\n", record.partition.value, static_cast<long>(record.offset.value));
    }
  });
  if (!consumer) return consumer.error();

  while (!enough) {
    if (auto ended = consumer->wait(100ms); ended) return *ended;
  }
  return consumer->close(10s);  // Finishes what runs, stores the offsets, leaves the group.
}

}  // namespace examples

namespace baton::client {
namespace {

TEST(StreamExamples, CreateAndAppend) {
  TestStreams broker(3);
  broker.on_create = [&](const v1::CreateStreamRequest&, v1::CreateStreamResponse& response) {
    *response.mutable_stream() = broker.stream;
    return grpc::Status::OK;
  };
  broker.on_append = [](const v1::AppendRequest& request, v1::AppendResponse& response) {
    for (int i = 0; i < request.records_size(); ++i) response.add_records()->set_offset(i);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(examples::create_and_append(*Broker::open(broker.connection())).has_value());
}

TEST(StreamExamples, Produce) {
  TestStreams broker(3);
  EXPECT_TRUE(examples::produce_records(*Broker::open(broker.connection())).has_value());
  EXPECT_EQ(broker.log.values(0).size() + broker.log.values(1).size() + broker.log.values(2).size(),
            1000U);
}

TEST(StreamExamples, Read) {
  TestStreams broker;
  broker.on_read = [](int, const v1::ReadRequest&, TestStreams::ReadCall& call) {
    v1::ReadResponse response;
    response.set_batches(batch_of({"a", "b"}, 0));
    response.set_next_offset(2);
    response.set_end_offset(2);
    call.Write(response);
    return grpc::Status::OK;
  };
  EXPECT_TRUE(examples::read_records(*Broker::open(broker.connection())).has_value());
}

TEST(StreamExamples, Consume) {
  TestStreams broker;
  std::atomic<bool> enough = false;
  broker.on_subscribe = [&](int, TestStreams::SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.update(true, false, 1, 0);
    EXPECT_TRUE(dialog.read_until("store 0 1 0"));
    dialog.deliver({"a", "b"}, 0, 1);
    enough = true;
    return dialog.finish();
  };
  EXPECT_TRUE(examples::consume_records(*Broker::open(broker.connection()), enough).has_value());
}

}  // namespace
}  // namespace baton::client
