#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/bucket_handle.h>
#include <baton/connection.h>
#include <baton/queue_handle.h>
#include <baton/result.h>
#include <baton/stream_handle.h>

namespace baton::client {

/// A table of a shard's checkpoint.
struct TableInfo {
  std::string name{};
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
};

/// What one shard's store holds. Positions are those of rounds in its journal.
struct ShardInfo {
  std::uint64_t boot = 0;
  std::uint32_t format_version = 0;
  std::vector<TableInfo> tables{};
  std::uint64_t checkpoint_position = 0;
  std::uint64_t journal_first = 0;
  std::uint64_t journal_next = 0;
  std::uint64_t journal_durable = 0;
  std::uint64_t journal_bytes = 0;
};

/// A broker, and the way to all that it has: `broker.queue("orders").producer()`.
///
/// The calls of a Broker and of its handles (Queue, Stream, Group, Bucket) share one connection,
/// which lives as long as the last of them. Each call blocks until the answer or the deadline, and
/// is tried once. A producer, consumer or watch has a connection of its own, so that it does not
/// share a socket's throughput, and may outlive the Broker that it came from.
///
/// Thread-safe. A value: a copy uses the same connection.
class Broker {
 public:
  /// Checks the options and reads the TLS files. Does not wait for the broker: the first call does.
  static Result<Broker> open(ConnectionOptions options = {});

  /// Waits until the broker is connected, retrying until `timeout`.
  Status wait_until_ready(std::chrono::milliseconds timeout) const;

  // Handles. They ask the broker nothing: a name that is not there fails in their calls.

  [[nodiscard]] Queue queue(std::string_view name) const { return {connection_, name}; }
  [[nodiscard]] Stream stream(std::string_view name) const { return {connection_, name}; }
  [[nodiscard]] Bucket bucket(std::string_view name) const { return {connection_, name}; }

  // What there is, in the order of the names, which begin with `prefix`.

  Result<std::vector<QueueInfo>> queues(std::string_view prefix = {}) const {
    return Queue::list(connection_, prefix);
  }
  Result<std::vector<StreamInfo>> streams(std::string_view prefix = {}) const {
    return Stream::list(connection_, prefix);
  }
  Result<std::vector<BucketInfo>> buckets(std::string_view prefix = {},
                                          const CallOptions& options = {}) const {
    return Bucket::list_all(connection_, prefix, options);
  }
  /// Of all streams: one entry per group and partition.
  Result<std::vector<GroupInfo>> groups() const { return Stream::list_groups(connection_, {}); }

  // For operators.

  /// Makes a checkpoint of every shard, and waits until it is durable.
  Status checkpoint() const;
  /// What each shard's store holds, as of its last checkpoint.
  Result<std::vector<ShardInfo>> shards() const;

 private:
  explicit Broker(ConnectionPointer connection) : connection_(std::move(connection)) {}

  ConnectionPointer connection_;
};

}  // namespace baton::client
