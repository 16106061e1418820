#pragma once

#include <cstdint>
#include <deque>

#include "core/kv/types.h"

namespace baton {

/// The newest changes of one bucket, each revision exactly one place after the one before it.
/// Pure. Owned by the bucket; not thread-safe.
///
/// It is not truth: rows do not hold it. After a restart it begins at the checkpoint's revision and
/// grows with the facts since; who resumes from before that is told so and lists again.
class KvHistory {
 public:
  /// Knows nothing of `floor` and before.
  void begin(Revision floor);
  /// Adds the change that follows on last(), and forgets the oldest ones past the bucket's bounds.
  /// Always keeps the newest, however large: a watch that is one change behind can go on.
  void append(KvChange change, const KvSettings& settings);

  /// Everything after this one is here.
  [[nodiscard]] Revision floor() const { return floor_; }
  [[nodiscard]] Revision last() const { return Revision{floor_.value + changes_.size()}; }
  /// The change with this revision: after floor(), up to last().
  [[nodiscard]] const KvChange& at(Revision revision) const;

 private:
  Revision floor_;
  std::deque<KvChange> changes_;
  std::uint64_t bytes_ = 0;
};

}  // namespace baton
