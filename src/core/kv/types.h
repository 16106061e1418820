#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <baton/strong.h>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"

namespace baton {

namespace limits {
inline constexpr std::size_t kBucketNameBytes = 200;
inline constexpr std::size_t kBucketsPerShard = 10'000;
inline constexpr std::size_t kKvKeyBytes = 512;
inline constexpr std::uint64_t kKvValueBytesDefault = 1 * kMiB;
inline constexpr std::uint64_t kKvValueBytesMax = 16 * kMiB;
inline constexpr std::uint64_t kKvKeysDefault = 1'000'000;
inline constexpr std::uint64_t kKvKeysMax = 100'000'000;
inline constexpr std::uint64_t kKvHistoryChangesDefault = 10'000;
inline constexpr std::uint64_t kKvHistoryChangesMax = 1'000'000;
inline constexpr std::uint64_t kKvHistoryBytesDefault = 16 * kMiB;
inline constexpr std::uint64_t kKvHistoryBytesMax = 1024 * kMiB;
inline constexpr Duration kKvTtlMin = std::chrono::milliseconds{1};
inline constexpr Duration kKvTtlMax = hours{24 * 365 * 10};
inline constexpr std::size_t kKvPageEntries = 10'000;
inline constexpr std::size_t kKvPageBytes = 4 * kMiB;
inline constexpr std::size_t kKvWatchesPerShard = 100'000;
inline constexpr std::uint64_t kKvWatchCreditMax = 1'000'000;
inline constexpr std::int64_t kKvWatchCreditBytesMax = 1024 * kMiB;
inline constexpr std::uint64_t kKvBytesPerShard = 2048 * kMiB;
}  // namespace limits

/// The number of a bucket, never given twice in a shard: its rows carry it.
using BucketId = Strong<struct BucketIdTag>;

/// Counts the changes of a bucket: one more with every put, removal and expiry, and never one
/// twice under the bucket's name, not even when the bucket is deleted and made again. 0 is not a
/// revision: "must not exist" in a compare-and-set, "from the beginning" in a watch.
using Revision = Strong<struct RevisionTag>;

constexpr Revision next(Revision revision) { return Revision{revision.value + 1}; }

/// What a bucket may hold, and how much of its past it keeps for watches that resume.
struct KvSettings {
  std::uint64_t value_bytes_max = limits::kKvValueBytesDefault;
  std::uint64_t keys_max = limits::kKvKeysDefault;
  std::uint64_t history_changes_max = limits::kKvHistoryChangesDefault;
  std::uint64_t history_bytes_max = limits::kKvHistoryBytesDefault;
  bool operator==(const KvSettings&) const = default;
};

/// A key as one write left it. Never changed after that, so the map, the history and the replies on
/// their way to other threads share it.
struct KvEntry {
  std::string key;
  std::string value;
  Revision revision;                      // Of the last write.
  Revision created_revision;              // Of the write that made the key.
  std::uint64_t version = 1;              // Writes since then, that one included.
  Instant expires_at = Instant::never();  // Set or cleared by each write.
  bool operator==(const KvEntry&) const = default;
};
using KvEntryRef = std::shared_ptr<const KvEntry>;

/// One change of a bucket, as a watch sees it.
struct KvChange {
  enum class Kind : std::uint8_t { put, removed, expired };
  Kind kind = Kind::put;
  /// Its revision is the change's. Of a key that is gone: the key, and no value.
  KvEntryRef entry;
};

/// Each names the first part that is out of its limits.
Status validate(const KvSettings& settings);
Status validate_bucket_name(std::string_view name);
Status validate_kv_key(std::string_view key);

}  // namespace baton
