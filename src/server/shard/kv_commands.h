#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/kv/effects.h"
#include "core/kv/machine.h"

/// What can be asked of the buckets of a shard. The bucket's name determines the shard.
namespace baton {

struct CreateBucketCommand {
  std::string bucket;
  KvSettings settings;
  std::optional<Error> error;
  KvBucketDescription description;
};
struct DeleteBucketCommand {
  std::string bucket;
  std::optional<Error> error;
};
struct DescribeBucketCommand {
  std::string bucket;
  std::optional<Error> error;
  KvBucketDescription description;
};
/// Lists the buckets of one shard.
struct ListBucketsCommand {
  std::string bucket;  // A prefix.
  std::string after;   // Only names after this one.
  std::size_t buckets_max = std::numeric_limits<std::size_t>::max();
  std::vector<KvBucketDescription> descriptions;
  bool more = false;  // There are buckets after the last one described.
};

struct KvGetCommand {
  std::string bucket;
  std::string key;
  std::optional<Error> error;
  KvEntryRef entry;  // Null if the key does not exist.
};
struct KvPutCommand {
  KvWrite request;
  std::optional<Error> error;
  KvOutcome outcome;
};
struct KvRemoveCommand {
  KvRemoval request;
  std::optional<Error> error;
  KvOutcome outcome;
};
struct KvListCommand {
  KvListing request;
  std::optional<Error> error;
  KvPage page;
};

/// Receives the changes for a watch. Called by the shard's releasing thread, in order, for durable
/// changes; must not block.
class KvWatchSink {
 public:
  KvWatchSink() = default;
  KvWatchSink(const KvWatchSink&) = delete;
  KvWatchSink& operator=(const KvWatchSink&) = delete;
  virtual ~KvWatchSink() = default;

  virtual void told(const KvWatchEffect& effect) = 0;
};

/// Starts a watch. Without a revision to resume after, or if that revision is no longer known, the
/// watch begins with a snapshot: `page` is its first part, and the watch continues after the page's
/// revision. While there are more pages, the watch has no credit: the pages are asked for one at a
/// time with KvSnapshotCommand, and the last one gives the watch the credit that was asked for
/// here.
struct KvWatchCommand {
  KvWatchRequest request;
  std::size_t page_entries_max = limits::kKvPageEntries;
  std::size_t page_bytes_max = limits::kKvPageBytes;
  std::shared_ptr<KvWatchSink> sink;
  std::optional<Error> error;
  bool compacted = false;  // The watch wanted to resume, and could not.
  bool snapshot = false;   // Whether `page` is used.
  KvPage page;
};
struct KvSnapshotCommand {
  KvListing request;
  KvWatchId watch;
  std::uint64_t credit = 0;  // In changes; the watch has its credit in bytes already.
  std::optional<Error> error;
  KvPage page;  // Empty if the watch has ended meanwhile.
};
/// The client has taken this much.
struct KvGrantCommand {
  std::string bucket;
  KvWatchId watch;
  std::uint64_t changes = 0;
  std::int64_t bytes = 0;
};
struct KvUnwatchCommand {
  std::string bucket;
  KvWatchId watch;
  bool broken = false;  // The connection broke: others are told that its session is lost.
};

using KvCommand =
    std::variant<CreateBucketCommand, DeleteBucketCommand, DescribeBucketCommand,
                 ListBucketsCommand, KvGetCommand, KvPutCommand, KvRemoveCommand, KvListCommand,
                 KvWatchCommand, KvSnapshotCommand, KvGrantCommand, KvUnwatchCommand>;

}  // namespace baton
