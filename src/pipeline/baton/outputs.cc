#include "pipeline/baton/outputs.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include <baton/queue_client.h>
#include <baton/stream_client.h>
#include <baton/stream_producer.h>

#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

class StreamOutput : public RecordOutput {
 public:
  static Result<std::unique_ptr<RecordOutput>> open(const Endpoint& endpoint) {
    client::StreamProducerOptions options;
    options.connection = connection_to(endpoint);
    options.stream = endpoint.name;
    // A producer waits for its broker, and for its stream, and says nothing meanwhile.
    auto client = client::StreamClient::connect(options.connection);
    if (!client.has_value()) return client.error();
    const auto stream = client->describe_stream(endpoint.name);
    if (!stream.has_value()) return client::explain(options.connection, stream.error());
    auto producer = client::StreamProducer::open(std::move(options));
    if (!producer.has_value()) return producer.error();
    return std::unique_ptr<RecordOutput>(new StreamOutput(*std::move(producer)));
  }

  Status send(Record record) override {
    client::NewRecord fresh;
    if (!record.key.empty()) fresh.key = std::move(record.key);
    fresh.value = std::move(record.value);
    for (auto& [name, value] : record.headers) {
      fresh.headers.push_back({.name = std::move(name), .value = std::move(value)});
    }
    producer_->send(std::move(fresh), {});
    return {};
  }
  Status flush(std::chrono::milliseconds timeout) override {
    const auto flushed = producer_->flush(timeout);
    if (!flushed.has_value()) return flushed.error();
    return {};
  }

 private:
  explicit StreamOutput(std::unique_ptr<client::StreamProducer> producer)
      : producer_(std::move(producer)) {}
  std::unique_ptr<client::StreamProducer> producer_;
};

class QueueOutput : public RecordOutput {
 public:
  static Result<std::unique_ptr<RecordOutput>> open(const Endpoint& endpoint) {
    auto client = client::QueueClient::connect(connection_to(endpoint));
    if (!client.has_value()) return client.error();
    return std::unique_ptr<RecordOutput>(new QueueOutput(endpoint, *std::move(client)));
  }

  Status send(Record record) override {
    constexpr std::size_t kPerCall = 500;
    client::NewMessage message;
    message.payload = std::move(record.value);
    message.fairness_key = std::move(record.key);
    for (auto& [name, value] : record.headers) message.headers[name] = std::move(value);
    messages_.push_back(std::move(message));
    return messages_.size() < kPerCall ? Status() : send_all();
  }
  Status flush(std::chrono::milliseconds /*timeout*/) override { return send_all(); }

 private:
  QueueOutput(Endpoint endpoint, client::QueueClient client)
      : endpoint_(std::move(endpoint)), client_(std::move(client)) {}

  Status send_all() {
    if (messages_.empty()) return {};
    const auto results = client_.enqueue(endpoint_.name, std::exchange(messages_, {}));
    if (!results.has_value()) return client::explain(connection_to(endpoint_), results.error());
    for (const client::EnqueueResult& result : *results) {
      if (result.error.has_value()) return *result.error;
    }
    return {};
  }

  Endpoint endpoint_;
  client::QueueClient client_;
  std::vector<client::NewMessage> messages_;
};

}  // namespace

Result<std::unique_ptr<RecordOutput>> open_stream_output(const Endpoint& endpoint,
                                                         const OutputOptions& /*options*/) {
  return StreamOutput::open(endpoint);
}

Result<std::unique_ptr<RecordOutput>> open_queue_output(const Endpoint& endpoint,
                                                        const OutputOptions& /*options*/) {
  return QueueOutput::open(endpoint);
}

}  // namespace baton::pipeline
