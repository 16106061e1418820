#include "pipeline/baton/outputs.h"

#include <string_view>
#include <utility>
#include <vector>

#include <baton/broker.h>
#include <baton/stream_producer.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

class StreamOutput : public RecordOutput {
 public:
  static Result<std::unique_ptr<RecordOutput>> open(const Endpoint& endpoint) {
    const client::ConnectionOptions connection = connection_to(endpoint);
    BATON_TRY(const client::Broker broker, client::Broker::open(connection));
    const client::Stream stream = broker.stream(endpoint.name);
    // A producer would wait silently for its broker and stream, so both are checked first.
    const auto found = stream.describe();
    if (!found.has_value()) return client::explain(connection, found.error());
    BATON_TRY(auto producer, stream.producer());
    return std::unique_ptr<RecordOutput>(new StreamOutput(std::move(producer)));
  }

  Status send(Record record) override {
    client::NewRecord fresh;
    if (!record.key.empty()) fresh.key = std::move(record.key);
    fresh.value = std::move(record.value);
    for (auto& [name, value] : record.headers) {
      fresh.headers.push_back({.name = std::move(name), .value = std::move(value)});
    }
    producer_.send(std::move(fresh), {});
    return {};
  }
  Status flush(std::chrono::milliseconds timeout) override { return producer_.flush(timeout); }

 private:
  explicit StreamOutput(client::StreamProducer producer) : producer_(std::move(producer)) {}
  client::StreamProducer producer_;
};

class QueueOutput : public RecordOutput {
 public:
  static Result<std::unique_ptr<RecordOutput>> open(const Endpoint& endpoint) {
    BATON_TRY(const client::Broker broker, client::Broker::open(connection_to(endpoint)));
    return std::unique_ptr<RecordOutput>(new QueueOutput(endpoint, broker.queue(endpoint.name)));
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
  QueueOutput(Endpoint endpoint, client::Queue queue)
      : endpoint_(std::move(endpoint)), queue_(std::move(queue)) {}

  Status send_all() {
    if (messages_.empty()) return {};
    const auto results = queue_.enqueue(std::exchange(messages_, {}));
    if (!results.has_value()) return client::explain(connection_to(endpoint_), results.error());
    for (const client::EnqueueResult& result : *results) {
      if (result.error.has_value()) return *result.error;
    }
    return {};
  }

  Endpoint endpoint_;
  client::Queue queue_;
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
