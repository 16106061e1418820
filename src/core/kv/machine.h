#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/name_range.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/kv/effects.h"
#include "core/kv/facts.h"
#include "core/kv/history.h"
#include "core/kv/types.h"
#include "core/kv/watches.h"

namespace baton {

/// A write. Each one sets the time-to-live anew, or clears it: renewing a lease is a write like any
/// other, with a revision of its own, so that a comparison with the former one fails.
struct KvWrite {
  std::string bucket;
  std::string key;
  std::string value;
  std::optional<Revision> expected;  // Absent: any revision. 0: the key must not exist.
  std::optional<Duration> ttl;       // Absent: the key stays.
};

struct KvRemoval {
  std::string bucket;
  std::string key;
  std::optional<Revision> expected;  // Absent: any revision.
};

/// How a write or removal ended.
struct KvOutcome {
  enum class Verdict : std::uint8_t {
    done,
    unchanged,  // There was nothing to remove.
    refused,    // The key is not at the expected revision.
  };
  Verdict verdict = Verdict::done;
  Revision revision;   // Of the change; when there was none, of the bucket.
  KvEntryRef current;  // Of a refusal: the key as it is; null if it is absent.
};

struct KvListing {
  std::string bucket;
  std::string prefix;
  std::string after;  // Keys greater than this one: `next` of the page before.
  std::size_t entries_max = limits::kKvPageEntries;
  std::size_t bytes_max = limits::kKvPageBytes;  // About; one entry always fits.
};

/// Keys in order. All of one page are as of `revision`; a watch after the revision of the first
/// page sees whatever changed while the others were read.
struct KvPage {
  std::vector<KvEntryRef> entries;
  Revision revision;
  std::string next;  // Empty: this was the last page.
};

struct KvWatchRequest {
  KvWatchId watch;
  std::string bucket;
  KvFilter filter;
  std::optional<Revision> after;  // The last one seen. Absent: only new changes.
  std::uint64_t credit = 0;       // Changes, and
  std::int64_t credit_bytes = limits::kKvWatchCreditBytesMax;  // bytes of keys and values.
  std::string session;  // A key whose holder is behind this watch; empty: none.
};

struct KvBucketDescription {
  BucketId id;
  std::string name;
  KvSettings settings;
  Instant created_at;
  Revision revision;
  Revision history_floor;   // A watch may resume after this one, or a later one.
  std::uint64_t keys = 0;   // Those that are due, and not expired yet, included.
  std::uint64_t bytes = 0;  // Of keys and values.
  std::size_t watches = 0;
};

/// Counted as things happen: reading them costs nothing.
struct KvTotals {
  std::uint64_t buckets = 0;
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;
  std::uint64_t changes_total = 0;
  std::uint64_t refused_total = 0;
  std::uint64_t expired_total = 0;
  std::uint64_t fell_behind_total = 0;
};

/// The buckets of one shard. Pure: commands and time in, facts and effects out. Owned by one shard;
/// not thread-safe.
///
/// Truth changes only in apply(). Every reply is as of the moment it is given, and the owner
/// releases it when all facts recorded before are durable: together that is linearizable.
///
/// Invariant: nobody sees a key at or past its deadline. A command that meets one records its
/// expiry first, as a change like any other, and then goes on; so what is answered follows from the
/// facts alone, and a key once answered as gone never comes back without a write.
///
/// Cost: get, put, remove and an expiry are O(log n), and a prefix check for each watch of the
/// bucket; a page costs the keys it looks at.
class KvMachine {
 public:
  struct Options {
    std::size_t buckets_max = limits::kBucketsPerShard;
    std::size_t watches_max = limits::kKvWatchesPerShard;
    std::uint64_t bytes_max = limits::kKvBytesPerShard;  // Of keys and values: they are in memory.
  };
  /// Takes each fact as it happens, before it is applied: the journal.
  using Recorder = std::function<void(const KvFact&)>;

  KvMachine(Options options, Recorder recorder);

  // Buckets.
  /// Creating it again with the same settings is fine: `false` then. Otherwise already_exists.
  Result<std::pair<KvBucketDescription, bool>> create_bucket(std::string_view name,
                                                             const KvSettings& settings,
                                                             Instant now);
  /// With all keys; its watches end. Answers what is no more.
  Result<KvBucketDescription> delete_bucket(std::string_view name);
  [[nodiscard]] Result<KvBucketDescription> describe(std::string_view name) const;
  /// By name: buckets in the range, at most `buckets_max`, and whether others are left.
  [[nodiscard]] std::pair<std::vector<KvBucketDescription>, bool> list_buckets(
      NameRange range = {},
      std::size_t buckets_max = std::numeric_limits<std::size_t>::max()) const;

  // Keys. `now` never goes back. Those that only read may record expiries.
  /// Null if there is no such key.
  Result<KvEntryRef> get(std::string_view bucket, std::string_view key, Instant now);
  Result<KvOutcome> put(KvWrite write, Instant now);
  Result<KvOutcome> remove(const KvRemoval& removal, Instant now);
  Result<KvPage> list(const KvListing& listing, Instant now);

  // Watches. They make no facts; a restart ends them all.
  /// What follows comes as effects, beginning with one that confirms it or ends it.
  Status watch(const KvWatchRequest& request);
  /// Returns this much credit to the watch. An unknown one has ended meanwhile, and is ignored.
  void grant(KvWatchId watch, std::uint64_t changes,
             std::int64_t bytes = limits::kKvWatchCreditBytesMax);
  /// Lets an effect say how far the watch is, even when there is nothing to send.
  void report(KvWatchId watch) { watches_.report(watch); }
  /// Ended by its client. Nothing more is sent.
  void unwatch(KvWatchId watch);
  /// The watch ended without a goodbye. If its session key exists, the others get session_lost.
  void watch_broken(KvWatchId watch, Instant now);
  [[nodiscard]] bool has_effects() const { return watches_.has_effects(); }
  /// What has gathered since the last call, grouped by watch.
  std::vector<KvWatchEffect> take_effects() { return watches_.take_effects(); }

  // Time.
  [[nodiscard]] Instant next_deadline() const;
  /// Expires the keys that are due, the longest overdue first, at most `count`. Answers how many.
  std::size_t expire(Instant now, std::size_t count);

  // Truth.
  /// Makes `fact` true; live and when recovering.
  void apply(KvFact fact);
  /// Puts and erases the rows that changed since the last call. O(changed).
  void append_changed_rows(RowBatch& batch);
  /// About the bytes of those rows.
  [[nodiscard]] std::size_t changed_bytes() const { return changed_bytes_; }
  /// Recovery: takes a row, those of kv_buckets first, before the facts of the journal are applied.
  Status load(Table table, const Row& row);

  [[nodiscard]] const KvTotals& totals() const { return totals_; }
  [[nodiscard]] std::size_t watches() const { return watches_.size(); }
  [[nodiscard]] bool has_watch(KvWatchId watch) const { return watches_.find(watch) != nullptr; }

 private:
  using Entries = std::map<std::string, KvEntryRef, std::less<>>;
  struct Bucket {
    BucketId id;
    std::string name;
    KvSettings settings;
    Instant created_at;
    Entries entries;
    std::uint64_t bytes = 0;
    KvHistory history;

    [[nodiscard]] Revision revision() const { return history.last(); }
  };
  struct Deadline {
    Instant at;
    BucketId bucket;
    std::string key;
    auto operator<=>(const Deadline&) const = default;
  };
  using ChangedKey = std::pair<BucketId, std::string>;

  // machine.cc: commands.
  void commit(KvFact fact);
  [[nodiscard]] Result<const Bucket*> find(std::string_view name) const;
  KvEntryRef live_entry(const Bucket& bucket, std::string_view key, Instant now);
  void expire_key(const Bucket& bucket, std::string_view key);
  KvOutcome refuse(const Bucket& bucket, KvEntryRef current);
  [[nodiscard]] static Status check(const KvWrite& write, const Bucket& bucket);
  [[nodiscard]] Status check_room(const Bucket& bucket, const KvWrite& write,
                                  const KvEntryRef& current) const;
  [[nodiscard]] static Entries::const_iterator page_begin(const Bucket& bucket,
                                                          const KvListing& listing);
  [[nodiscard]] KvBucketDescription description_of(const Bucket& bucket) const;

  // truth.cc: facts and rows.
  void on(KvBucketCreated&& fact);
  void on(KvBucketDeleted&& fact);
  void on(KvPut&& fact);
  void on(KvRemoved&& fact);
  void on(KvExpired&& fact);
  Bucket& known(BucketId id);
  void add_entry(Bucket& bucket, KvEntryRef entry);
  KvEntryRef take_entry(Bucket& bucket, std::string_view key);
  void drop_key(Bucket& bucket, std::string key, KvChange::Kind kind);
  void append_change(Bucket& bucket, KvChange change);
  void forget_deadlines(const Bucket& bucket);
  void mark_bucket(BucketId id);
  void mark_entry(BucketId bucket, const KvEntry& entry);
  void append_bucket_rows(RowBatch& batch) const;
  Status load_bucket(const Row& row);
  Status load_entry(const Row& row);

  Options options_;
  Recorder recorder_;
  std::map<BucketId, Bucket> buckets_;
  std::map<std::string, BucketId, std::less<>> names_;
  std::set<Deadline> deadlines_;
  KvWatches watches_;
  BucketId next_bucket_{1};
  Revision next_floor_;  // A new bucket goes on from here.
  KvTotals totals_;

  // Since the last checkpoint. A key that changes often counts once, at its latest size.
  std::set<BucketId> changed_buckets_;
  std::set<BucketId> deleted_buckets_;
  std::map<ChangedKey, std::size_t> changed_entries_;
  std::size_t changed_bytes_ = 0;
};

}  // namespace baton
