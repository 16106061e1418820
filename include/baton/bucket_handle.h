#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/kv.h>
#include <baton/result.h>

namespace baton::client {

class KvWatchLink;

/// A running watch; Bucket::watch() opens one. After a reconnect it goes on after the last revision
/// it saw, so that no change is left out and none comes twice; if the broker lacks those changes,
/// it reports `compacted`.
///
/// Thread-safe. The destructor calls close() with a timeout of one second. Movable; a moved-from
/// watch may only be destroyed or assigned to.
class KvWatch {
 public:
  KvWatch(KvWatch&&) noexcept;
  KvWatch& operator=(KvWatch&&) noexcept;
  KvWatch(const KvWatch&) = delete;
  KvWatch& operator=(const KvWatch&) = delete;
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
  friend class Bucket;
  explicit KvWatch(std::unique_ptr<KvWatchLink> link);

  std::unique_ptr<KvWatchLink> link_;
};

/// A bucket of keys of a Broker, by its name: made by Broker::bucket(). What a call answers was
/// true at some moment while it ran, and is on the disk: together the calls are linearizable.
///
/// An Error of put(), cas() or remove() other than a refusal by the broker (invalid_argument,
/// bucket_not_found, resource_exhausted, disk_full) leaves open whether the change has happened.
///
/// Thread-safe. A value: a copy uses the same connection.
class Bucket {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }

  // The bucket itself.

  /// Succeeds if the bucket exists with the same settings; fails with bucket_exists if they differ.
  Result<BucketInfo> create(const BucketSettings& settings = {},
                            const CallOptions& options = {}) const;
  /// Removes the bucket and every key in it. Its watches end.
  Status drop(const CallOptions& options = {}) const;
  Result<BucketInfo> describe(const CallOptions& options = {}) const;

  // Its keys.

  /// nullopt if there is no such key.
  Result<std::optional<KvEntry>> get(std::string_view key, const CallOptions& options = {}) const;
  Result<KvOutcome> put(std::string_view key, std::string_view value,
                        const PutOptions& options = {}) const;
  /// put() with an expected revision; 0: only if the key does not exist.
  Result<KvOutcome> cas(std::string_view key, std::uint64_t expected, std::string_view value,
                        PutOptions options = {}) const;
  Result<KvOutcome> remove(std::string_view key, const RemoveOptions& options = {}) const;
  /// One page; for the next one pass its `next` as `after`.
  Result<KvPage> list(const ListKeysOptions& options = {}) const;

  /// Opens a watch, with a connection of its own. Does not wait for the broker:
  /// wait_until_started() does.
  Result<KvWatch> watch(KvWatchOptions options, KvWatchCallback callback) const;

 private:
  friend class Broker;
  Bucket(ConnectionPointer connection, std::string_view name)
      : connection_(std::move(connection)), name_(name) {}
  static Result<std::vector<BucketInfo>> list_all(const ConnectionPointer& connection,
                                                  std::string_view prefix,
                                                  const CallOptions& options);

  ConnectionPointer connection_;
  std::string name_;
};

}  // namespace baton::client
