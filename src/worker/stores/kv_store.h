#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"

namespace baton::coord {

/// Of one key's state: grows with each change of the key, removals and what follows them included.
/// 0: there is no such key.
using KvRevision = std::uint64_t;

struct StoredEntry {
  std::string key{};
  std::string value{};
  KvRevision revision = 0;
};

/// How a compare-and-set ended. An Error instead means that nobody knows: it may have happened.
struct CasOutcome {
  bool done = false;        // false: the key was not at the expected revision.
  KvRevision revision = 0;  // Done: of the new state (of a removal: meaningless).
};

/// Something a watch saw.
struct WatchEvent {
  enum class Kind : std::uint8_t {
    put,           // Of the snapshot, or a change.
    removed,       // Removed or expired; the revision is the removal's own.
    snapshot_end,  // Every key that was there when the watch began has been shown.
    session_lost,  // A hint (broker only): the connection that named `key` as its session broke.
    broken,        // The last one: the watch has ended by itself; `entry.value` says why.
  };
  Kind kind = Kind::put;
  StoredEntry entry{};
};

/// Called one event at a time, on a thread of the store, and never once the Watch is destroyed. It
/// must not block, and must not destroy the Watch.
using WatchCallback = std::function<void(WatchEvent)>;

struct WatchOptions {
  std::string prefix{};
  /// The key that stands for the owner of this watch (broker only): when the connection breaks
  /// without a goodbye, the other watches get session_lost. Empty: no such key.
  std::string session{};
};

/// A running watch; the destructor ends it, waiting for a callback in progress.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  virtual ~Watch() = default;
};

/// A key-value store as the workers need it: single-key compare-and-set and a watch.
///
/// Thread-safe. Every call waits for at most `timeout`, and then fails with `unavailable` or
/// `deadline_exceeded`. Keys match [A-Za-z0-9_.-]+ (a NATS subject).
class KvStore {
 public:
  KvStore() = default;
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;
  virtual ~KvStore() = default;

  /// Linearizable: sees every write that was confirmed before it was called.
  virtual Result<std::optional<StoredEntry>> get(std::string_view key, Duration timeout) = 0;
  /// Writes if the key is at `expected` (0: if there is no such key). With a `ttl` the store may
  /// drop the key once that long has passed without a write: garbage collection, never a lease.
  virtual Result<CasOutcome> cas(std::string_view key, KvRevision expected, std::string_view value,
                                 std::optional<Duration> ttl, Duration timeout) = 0;
  virtual Result<CasOutcome> remove(std::string_view key, KvRevision expected,
                                    Duration timeout) = 0;
  /// Every key under the prefix, each as linearizable as get(); not one instant of all of them.
  virtual Result<std::vector<StoredEntry>> list(std::string_view prefix, Duration timeout) = 0;

  /// A hint: may be late, may die, and then says `broken` or nothing at all. Begins with a
  /// snapshot. Each key's events come in the order of its changes, though some may be left out.
  virtual Result<std::unique_ptr<Watch>> watch(WatchOptions options, WatchCallback callback,
                                               Duration timeout) = 0;

  /// "baton://127.0.0.1:7470/baton-leases", for messages.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Requests sent so far, watches included: what a group costs its store.
  [[nodiscard]] virtual std::uint64_t requests() const = 0;
};

struct StoreOptions {
  /// The longest wait for the connection and the bucket. Individual calls name their own.
  Duration connect_timeout = std::chrono::seconds(5);
  /// For one who only looks: changes nothing. A bucket that is not there is an error
  /// (bucket_not_found; etcd has none, only keys), and there is no self-test.
  bool to_read = false;
  /// NATS: a removal leaves a tombstone, which watches need and listings have to read. Tombstones
  /// older than this are removed by the next list().
  Duration traces_kept = std::chrono::minutes(1);
  /// The largest value that will be written: the self-test makes sure that the store takes it.
  std::size_t value_bytes = 0;
  /// TLS and the login. A URL that says TLS needs none of it where the system's authorities do.
  client::SecurityOptions security{};
};

/// Races compare-and-sets on a scratch key under `_selftest.`; fails unless each has one winner.
/// Then writes and reads a value of `value_bytes`, unless that is 0.
Status self_test(KvStore& store, Duration timeout, std::size_t value_bytes = 0);

}  // namespace baton::coord
