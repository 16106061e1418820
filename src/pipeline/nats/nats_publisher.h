#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pipeline/nats/nats_stream.h"
#include "worker/nats/nats_handles.h"

namespace baton::pipeline {

/// Publishes messages to a JetStream stream, many at once. For one thread.
class NatsPublisher {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// At most `in_flight` messages are unconfirmed.
  static Result<std::unique_ptr<NatsPublisher>> open(const std::string& servers,
                                                     const std::string& stream,
                                                     const client::SecurityOptions& security = {},
                                                     std::size_t in_flight = 1'000);
  NatsPublisher(const NatsPublisher&) = delete;
  NatsPublisher& operator=(const NatsPublisher&) = delete;
  ~NatsPublisher();

  /// Waits while too many messages are in flight. May return the error of an earlier message, as
  /// may flush().
  Status publish(const std::string& subject, const Headers& headers, std::string_view payload);
  /// Waits until everything is confirmed; returns the first error since the last flush.
  Status flush(std::chrono::milliseconds timeout);

 private:
  /// State that libnats's threads use.
  struct Failure {
    std::mutex mutex;
    std::optional<Error> first;
  };
  NatsPublisher() = default;
  static void on_failed(jsCtx* context, jsPubAckErr* failed, void* closure);
  std::optional<Error> take_failure();

  std::shared_ptr<NatsStream> stream_;
  std::unique_ptr<Failure> failure_ = std::make_unique<Failure>();
  coord::NatsJetStream jetstream_;
};

}  // namespace baton::pipeline
