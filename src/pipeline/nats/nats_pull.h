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

/// A message as it came.
struct NatsPulled {
  NatsDelivery delivery{};
  coord::NatsMessage message{};
};

/// Messages of one durable consumer, asked for in portions. Used by one thread.
///
/// An error means that something may have been lost on its way, or that the consumer is gone:
/// another one is to be made, from what was acknowledged.
class NatsPull {
 public:
  static Result<std::unique_ptr<NatsPull>> open(std::shared_ptr<NatsStream> stream,
                                                const std::string& consumer);

  /// Asks for so many, unless that is under way.
  Status ask(std::size_t messages);
  /// What has come, at most so many; waits up to `time` for the first.
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
  std::size_t open_ = 0;        // Asked for, and not come.
  std::uint64_t expected_ = 1;  // The number of the next delivery.
  std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace baton::pipeline
