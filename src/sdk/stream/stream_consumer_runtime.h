#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <baton/stream_consumer.h>

#include "sdk/stream/subscribe_link.h"

namespace baton::client {

/// What runs a StreamConsumer: `concurrency` workers, which decode batches and run the handler and
/// the callbacks. Thread-safe; joins all of them in close().
class StreamConsumerRuntime {
 public:
  StreamConsumerRuntime(const Connection& connection, std::string stream,
                        StreamConsumerOptions options, StreamConsumer::Handler handler,
                        const std::vector<PartitionStart>& partitions);
  ~StreamConsumerRuntime();
  StreamConsumerRuntime(const StreamConsumerRuntime&) = delete;
  StreamConsumerRuntime& operator=(const StreamConsumerRuntime&) = delete;
  StreamConsumerRuntime(StreamConsumerRuntime&&) = delete;
  StreamConsumerRuntime& operator=(StreamConsumerRuntime&&) = delete;

  Status store_offset(const StreamPosition& position, std::chrono::milliseconds timeout) {
    return link_.store_offset(position, timeout);
  }
  Status close(std::chrono::milliseconds timeout);
  std::optional<Status> wait(std::chrono::milliseconds timeout) { return link_.wait(timeout); }
  StreamConsumer::Stats stats() const { return link_.stats(); }
  SessionLease lease() const { return link_.lease(); }

 private:
  void work();
  void run(SeatTask& task);
  void handle(SeatTask& task);
  void fail(SeatTask& task, const Error& error);

  const StreamConsumerOptions options_;
  const StreamConsumer::Handler handler_;
  std::mutex close_mutex_;        // Held by the thread that closes the consumer.
  std::optional<Status> closed_;  // Under close_mutex_.
  SubscribeLink link_;
  std::vector<std::thread> workers_;
};

}  // namespace baton::client
