#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <baton/connection.h>
#include <baton/kv.h>
#include <baton/result.h>

namespace baton::client {

class KvWatchLink;

/// A running watch. After a reconnect it goes on after the last revision it saw, so that no change
/// is left out and none comes twice; if the broker lacks those changes, it reports `compacted`.
///
/// Thread-safe. The destructor calls close() with a timeout of one second.
class KvWatch {
 public:
  KvWatch(const KvWatch&) = delete;
  KvWatch& operator=(const KvWatch&) = delete;
  KvWatch(KvWatch&&) = delete;
  KvWatch& operator=(KvWatch&&) = delete;
  ~KvWatch();

  /// Waits until the broker has accepted the watch: every change from then on will be seen. Fails
  /// with the Error that ended the watch (bucket_not_found), or with deadline_exceeded.
  Status wait_until_started(std::chrono::milliseconds timeout);
  /// The last revision up to which everything was seen; 0 before the first snapshot's end.
  [[nodiscard]] std::uint64_t revision() const;

  /// Tells the broker that the watch ends on purpose, so that no session_lost is sent, and ends;
  /// waits for a callback in progress. Idempotent.
  void close(std::chrono::milliseconds timeout);
  /// Ends without telling the broker, as a crash would.
  void abandon();

 private:
  friend class KvClient;
  explicit KvWatch(std::unique_ptr<KvWatchLink> link);

  std::unique_ptr<KvWatchLink> link_;
};

/// Plain calls to a broker's buckets of keys. Each call blocks until the answer or the deadline,
/// and is tried once. What a call answers was true at some moment while it ran, and is on the disk:
/// together the calls are linearizable.
///
/// An Error of put(), cas() or remove() other than a refusal by the broker (invalid_argument,
/// bucket_not_found, resource_exhausted, disk_full) leaves open whether the change has happened.
///
/// Thread-safe: any number of threads may call at once, and share one connection. Movable; a
/// moved-from client may only be destroyed or assigned to. No call may be running when it is
/// destroyed; its watches, each of which has a connection of its own, may live on.
class KvClient {
 public:
  /// Checks the address and reads the TLS files. Does not wait for the broker: the first call does.
  static Result<KvClient> connect(ConnectionOptions options);

  KvClient(KvClient&&) noexcept;
  KvClient& operator=(KvClient&&) noexcept;
  KvClient(const KvClient&) = delete;
  KvClient& operator=(const KvClient&) = delete;
  ~KvClient();

  /// Waits until the broker is connected, retrying until `timeout`.
  Status wait_until_ready(std::chrono::milliseconds timeout);

  // Buckets.

  /// Succeeds if the bucket exists with the same settings; fails with bucket_exists if they differ.
  Result<BucketInfo> create_bucket(std::string_view name, const BucketSettings& settings = {},
                                   const CallOptions& options = {});
  /// Removes the bucket and every key in it. Its watches end.
  Status delete_bucket(std::string_view name, const CallOptions& options = {});
  Result<std::vector<BucketInfo>> list_buckets(std::string_view prefix = {},
                                               const CallOptions& options = {});
  Result<BucketInfo> describe_bucket(std::string_view name, const CallOptions& options = {});

  // Keys.

  /// nullopt if there is no such key.
  Result<std::optional<KvEntry>> get(std::string_view bucket, std::string_view key,
                                     const CallOptions& options = {});
  Result<KvOutcome> put(std::string_view bucket, std::string_view key, std::string_view value,
                        const PutOptions& options = {});
  /// put() with an expected revision; 0: only if the key does not exist.
  Result<KvOutcome> cas(std::string_view bucket, std::string_view key, std::uint64_t expected,
                        std::string_view value, PutOptions options = {});
  Result<KvOutcome> remove(std::string_view bucket, std::string_view key,
                           const RemoveOptions& options = {});
  /// One page; for the next one pass its `next` as `after`.
  Result<KvPage> list(std::string_view bucket, const ListKeysOptions& options = {});

  /// Starts a watch. Does not wait for the broker: wait_until_started() does.
  Result<std::unique_ptr<KvWatch>> watch(KvWatchOptions options, KvWatchCallback callback);

 private:
  struct State;
  explicit KvClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace baton::client
