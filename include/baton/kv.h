#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <baton/message.h>
#include <baton/result.h>

namespace baton::client {

/// What a bucket may hold, and how much of its past it keeps for watches that resume. A setting
/// that is absent gets the broker's default.
struct BucketSettings {
  std::optional<std::uint64_t> value_bytes_max{};
  std::optional<std::uint64_t> keys_max{};
  std::optional<std::uint64_t> history_changes_max{};
  std::optional<std::uint64_t> history_bytes_max{};
};

struct BucketInfo {
  std::string name{};
  std::uint64_t id = 0;
  BucketSettings settings{};  // Every setting is present.
  BrokerTime created_at{};
  std::uint64_t revision = 0;       // Of its last change.
  std::uint64_t history_floor = 0;  // A watch may resume after this revision or a later one.
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;  // Of keys and values.
  std::uint64_t watches = 0;
};

/// A key as it was left by one write.
struct KvEntry {
  std::string key{};
  std::string value{};
  std::uint64_t revision = 0;          // Of the last write. Never 0, never given twice.
  std::uint64_t created_revision = 0;  // Of the write that created the key.
  std::uint64_t version = 0;           // Writes since the key was created, that one included.
  std::optional<BrokerTime> expires_at{};

  bool operator==(const KvEntry&) const = default;
};

/// How a write or removal ended. A refusal is an answer, not an Error: the key was not at the
/// expected revision, and nothing has happened.
struct KvOutcome {
  bool done = false;
  /// Of the write or removal; of the bucket for a refusal, and for a removal that found nothing.
  std::uint64_t revision = 0;
  bool unchanged = false;            // The call succeeded, but there was nothing to remove.
  std::optional<KvEntry> current{};  // Of a refusal: the key as it is; nullopt if it is absent.
  std::optional<Error> error{};      // Of a refusal: Errc::revision_mismatch.
};

/// Keys in order, all as of one revision.
struct KvPage {
  std::vector<KvEntry> entries{};
  std::uint64_t revision = 0;
  std::string next{};  // For ListKeysOptions::after; empty: this was the last page.
};

/// How long one call may take, connecting included; absent: ConnectionOptions::deadline.
struct CallOptions {
  std::optional<std::chrono::milliseconds> deadline{};
};

struct PutOptions {
  /// Absent: whatever is there. 0: only if the key is not there. Otherwise only if the key is at
  /// this revision.
  std::optional<std::uint64_t> expected_revision{};
  /// The key is removed this long after the write unless it is written again. Absent: it stays.
  std::optional<std::chrono::milliseconds> ttl{};
  std::optional<std::chrono::milliseconds> deadline{};
};

struct RemoveOptions {
  std::optional<std::uint64_t> expected_revision{};  // Absent: whatever revision is there.
  std::optional<std::chrono::milliseconds> deadline{};
};

struct ListKeysOptions {
  std::string prefix{};
  std::string after{};         // `next` of the page before; no other value is accepted.
  std::uint32_t keys_max = 0;  // 0 = as many as the broker gives.
  std::optional<std::chrono::milliseconds> deadline{};
};

/// Something a watch saw.
struct KvWatchEvent {
  enum class Kind : std::uint8_t {
    put,           // A key of the snapshot (`in_snapshot`), or a write.
    removed,       // The key was removed. The entry has no value.
    expired,       // The key's time-to-live ran out. The entry has no value.
    snapshot_end,  // The snapshot is complete, as of `revision`. Only changes follow.
    compacted,     // What was shown may be out of date: a new snapshot follows.
    session_lost,  // A hint: the watch that named `entry.key` as its session broke without
                   // `entry.revision` is the key's.
    disconnected,  // The connection broke (see `error`); the watch reconnects by itself.
    ended,         // The last event: `error` says why.
  };
  Kind kind = Kind::put;
  KvEntry entry{};
  bool in_snapshot = false;    // Before the snapshot_end.
  std::uint64_t revision = 0;  // Of the change, or of the snapshot.
  Error error{};
};

/// Called with one event at a time, on a thread of the SDK; never once the KvWatch is closed or
/// destroyed. The callback must not throw, and must not close or destroy its KvWatch. While it
/// blocks, nothing more is read: a watch that is too slow falls behind, and then gets `compacted`
/// and a new snapshot.
using KvWatchCallback = std::function<void(const KvWatchEvent&)>;

struct KvWatchOptions {
  std::string prefix{};  // Keys that begin with this; empty: all keys.
  std::string key{};     // Instead of a prefix: this key only.
  /// Resume after this revision, without a snapshot if the broker still knows every change since.
  std::optional<std::uint64_t> resume_after{};
  /// The key that stands for this watch's owner: when the connection breaks without a goodbye,
  /// other watches that see the key get session_lost. Empty: no such key.
  std::string session{};
  /// Off: the first broken connection ends the watch.
  bool reconnect = true;
};

}  // namespace baton::client
