#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rows.h"
#include "storage/disk/checkpoint_store.h"

namespace baton {

/// A store that holds in memory the rows that its disk has no room for, and shows them to readers
/// as if they were stored: deliveries do not wait for a full disk. Thread-safe, as the store under
/// it.
///
/// A commit includes the held rows that it does not erase itself: so the checkpoint of a drained
/// queue needs no room for messages that are gone.
///
/// Invariant: from the call of spill() on, a row is in the store or held.
class SpillBuffer final : public CheckpointStore {
 public:
  explicit SpillBuffer(CheckpointStore& store) : store_(store) {}

  Status commit(const RowBatch& batch) override;
  /// Fails if the rows are now held and not in the store. They must not be spilled again: flush()
  /// does that.
  Status spill(const RowBatch& batch) override;
  Result<std::optional<std::string>> get(Table table, std::string_view key) const override;
  Result<std::vector<Row>> scan(const Range& range) const override;

  /// Tries to write the held rows to the store.
  Status flush();

 private:
  using Place = std::pair<std::uint8_t, std::string>;

  void hold(const RowBatch& batch);
  [[nodiscard]] RowBatch all_held() const;
  void forget(const RowBatch& batch);
  [[nodiscard]] std::vector<Row> held_in(const Range& range) const;

  CheckpointStore& store_;
  // Held while the store is written: a flush that began before a commit must not restore what the
  // commit erases.
  std::mutex writes_;
  mutable std::mutex mutex_;  // Locked after writes_.
  std::map<Place, std::string> held_;
};

}  // namespace baton
