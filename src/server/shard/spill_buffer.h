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

/// A store that holds in memory what its disk has no room for, and shows it to readers as if it
/// were there: deliveries do not wait for a disk that is full. Thread-safe, as the store under it.
///
/// A commit takes along what is held and what it does not erase itself: so the checkpoint of a
/// queue that was drained needs no room for the messages that are gone.
///
/// Invariant: a row is in the store, or held, from the moment that spill() was called with it.
class SpillBuffer final : public CheckpointStore {
 public:
  explicit SpillBuffer(CheckpointStore& store) : store_(store) {}

  Status commit(const RowBatch& batch) override;
  /// Fails when the rows are held now and not in the store. They are not to be spilled again:
  /// flush() does that.
  Status spill(const RowBatch& batch) override;
  Result<std::optional<std::string>> get(Table table, std::string_view key) const override;
  Result<std::vector<Row>> scan(const Range& range) const override;

  /// Tries to bring what is held into the store.
  Status flush();

 private:
  using Place = std::pair<std::uint8_t, std::string>;

  void hold(const RowBatch& batch);
  [[nodiscard]] RowBatch all_held() const;
  void forget(const RowBatch& batch);
  [[nodiscard]] std::vector<Row> held_in(const Range& range) const;

  CheckpointStore& store_;
  // Held while the store is written: what a commit erases must not be put back by a flush that
  // began before it.
  std::mutex writes_;
  mutable std::mutex mutex_;  // Taken after it.
  std::map<Place, std::string> held_;
};

}  // namespace baton
