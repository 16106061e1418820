#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/nats/nats_handles.h"
#include "worker/nats/nats_link.h"

namespace baton::pipeline {

/// A JetStream stream on a NATS server or cluster, over one connection that reconnects by itself.
/// Thread-safe.
class NatsStream {
 public:
  struct Facts {
    std::vector<std::string> subjects{};
    std::uint64_t first = 0;  // Sequence numbers.
    std::uint64_t last = 0;
    std::uint64_t messages = 0;
    std::int64_t created_at_ns = 0;
    bool keeps_read = true;  // Acknowledged messages stay in the stream.
  };
  struct NewConsumer {
    std::string name{};
    std::string subject{};
    std::uint64_t start = 1;
  };
  struct Consumer {
    std::uint64_t floor = 0;      // Everything up to this sequence is acknowledged.
    std::uint64_t delivered = 0;  // The last delivered sequence.
    std::uint64_t pending = 0;    // Messages not delivered yet.
  };

  static Result<std::shared_ptr<NatsStream>> connect(const std::string& servers,
                                                     const std::string& stream,
                                                     const client::SecurityOptions& security = {});

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::shared_ptr<coord::NatsLink>& link() const { return link_; }
  natsConnection* connection() { return link_->connection(); }
  [[nodiscard]] bool is_connected() const;
  /// How often the connection was re-established.
  [[nodiscard]] std::uint64_t breaks() const;
  std::vector<std::string> servers() { return link_->servers(); }

  /// Fails with stream_not_found.
  Result<Facts> facts();
  Result<std::vector<std::string>> consumers();
  /// Fails with not_found.
  Result<Consumer> consumer(const std::string& consumer);
  /// Creates a durable pull consumer whose acknowledgements cover all messages up to one.
  Status create(const NewConsumer& consumer);
  /// Removes the consumer; succeeds if it does not exist.
  Status remove(const std::string& consumer);

  /// Acknowledges everything up to the message of `reply_subject`, without waiting.
  Status acknowledge(const std::string& reply_subject);
  /// The same, and waits until the server has confirmed.
  Status acknowledge(const std::string& reply_subject, std::chrono::milliseconds timeout);

 private:
  NatsStream(std::shared_ptr<coord::NatsLink> link, std::string name)
      : link_(std::move(link)), name_(std::move(name)) {}

  std::shared_ptr<coord::NatsLink> link_;
  std::string name_;
};

}  // namespace baton::pipeline
