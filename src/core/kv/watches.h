#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/kv/effects.h"
#include "core/kv/history.h"
#include "core/kv/types.h"

namespace baton {

/// Which keys a watch sees.
struct KvFilter {
  std::string text;
  bool exact = false;  // The key `text`; otherwise the keys that begin with it.

  [[nodiscard]] bool matches(std::string_view key) const {
    return exact ? key == text : key.starts_with(text);
  }
};

/// The watches of each bucket, and what each is to be told next. Pure, and not durable. Owned by
/// one KvMachine; not thread-safe.
///
/// A watch has no buffer of its own: one without credit is a place in its bucket's history, from
/// which it goes on when credit comes. So a slow watch costs a few bytes, and what it may lag is
/// bounded by the history.
///
/// Invariant: a watch is sent every change that it matches after the revision it asked for, in
/// order, once; or it is ended with a reason. None is skipped.
class KvWatches {
 public:
  struct Watch {
    KvFilter filter;
    std::uint64_t credit = 0;  // Changes it may be sent before it grants more.
    /// Bytes, likewise. The change that uses them up is sent whole, so it may go below 0.
    std::int64_t credit_bytes = limits::kKvWatchCreditBytesMax;
    std::string session;              // Empty: none.
    std::optional<Revision> waiting;  // The first change that it matches and lacks credit for.

    [[nodiscard]] bool has_credit() const { return credit > 0 && credit_bytes > 0; }
  };

  /// Sends what `history` has after `after`, as far as the credit goes. Answers whether it has all
  /// of it: if not, the watch has ended with that word.
  bool add(KvWatchId id, BucketId bucket, Watch watch, const KvHistory& history, Revision after);
  /// It is gone, and wants to hear nothing more. Unknown ones are fine.
  void remove(KvWatchId id);
  void grant(KvWatchId id, std::uint64_t changes, std::int64_t bytes, const KvHistory& history);
  void report(KvWatchId id);
  /// `history` has a new last change, and may have forgotten some: the watches that still wait for
  /// one of those end. Answers how many.
  std::size_t changed(BucketId bucket, const KvHistory& history);
  void bucket_deleted(BucketId bucket, Revision last);
  /// Tells the watches that match the key; nobody while another watch names it, for then its holder
  /// is back already.
  void session_lost(BucketId bucket, const KvSessionLost& lost);

  [[nodiscard]] std::optional<BucketId> bucket_of(KvWatchId id) const;
  [[nodiscard]] const Watch* find(KvWatchId id) const;
  [[nodiscard]] std::size_t size() const { return buckets_of_.size(); }
  [[nodiscard]] std::size_t size(BucketId bucket) const;
  /// Whether anything waits to be taken.
  [[nodiscard]] bool has_effects() const { return !effects_.empty(); }
  /// What has gathered since the last call: one for each watch, in the order of their numbers.
  std::vector<KvWatchEffect> take_effects();

 private:
  using Places = std::set<std::pair<Revision, KvWatchId>>;
  struct OfBucket {
    std::map<KvWatchId, Watch> watches;
    Places waiting;     // Those without credit, by the change they wait for.
    Revision revision;  // The bucket's.
  };

  void send(KvWatchId id, Watch& watch, const KvChange& change);
  void catch_up(OfBucket& bucket, KvWatchId id, const KvHistory& history, Revision from);
  std::size_t end_forgotten(OfBucket& bucket, const KvHistory& history);
  KvWatchEffect& effect_of(KvWatchId id);
  void end(KvWatchId id, KvWatchEnd why, Revision complete_to);
  static void set_waiting(OfBucket& bucket, KvWatchId id, std::optional<Revision> at);

  std::map<BucketId, OfBucket> buckets_;
  std::map<KvWatchId, BucketId> buckets_of_;
  std::map<KvWatchId, KvWatchEffect> effects_;
};

}  // namespace baton
