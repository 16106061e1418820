#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/nats/nats_names.h"
#include "pipeline/nats/nats_stream.h"
#include "worker/nats/nats_handles.h"

namespace baton::pipeline {

/// A message as it was received.
struct NatsPulled {
  NatsDelivery delivery{};
  coord::NatsMessage message{};
};

/// Pulls messages of one durable consumer, in portions. For one thread.
///
/// An error means that messages may have been lost, or that the consumer is gone: a new one must be
/// created from the acknowledged position.
class NatsPull {
 public:
  static Result<std::unique_ptr<NatsPull>> open(std::shared_ptr<NatsStream> stream,
                                                const std::string& consumer);

  /// Asks for this many messages, unless a request is under way.
  Status ask(std::size_t messages);
  /// Returns the messages that have arrived, at most this many; waits up to `time` for the first.
  Result<std::vector<NatsPulled>> take(std::size_t messages, std::chrono::milliseconds time);

 private:
  explicit NatsPull(std::shared_ptr<NatsStream> stream) : stream_(std::move(stream)) {}
  Status accept(coord::NatsMessage message, std::vector<NatsPulled>& taken);
  Status judge(natsMsg* status_message);
  [[nodiscard]] bool is_overdue() const;

  std::shared_ptr<NatsStream> stream_;
  std::string request_subject_;
  std::string inbox_;
  std::string reply_;  // Of the last request.
  std::uint64_t requests_ = 0;
  coord::NatsSubscription subscription_;
  std::size_t open_ = 0;        // Asked for and not received.
  std::uint64_t expected_ = 1;  // The number of the next delivery.
  std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace baton::pipeline
