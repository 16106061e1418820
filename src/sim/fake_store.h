#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/rows.h"
#include "storage/disk/checkpoint_store.h"

namespace baton {

/// What a store's disk and memory hold; outlives the FakeStore objects that use it, as a disk
/// outlives processes. Thread-safe.
///
/// Invariant: without pending changes, the visible state is the durable state.
class FakeStoreMedia {
 public:
  explicit FakeStoreMedia(std::uint64_t seed) : random_(seed) {}

  /// The process dies. Commits that returned ok survive, with what was spilled before them; of
  /// those that failed, the first few do (as if the disk had got that far); of rows spilled after
  /// them, each one may or may not. Stores opened before are dead from here on: their calls fail.
  void crash();
  /// The next commit crashes in its middle: its batch is durable as a whole or not at all.
  void crash_in_next_commit();
  /// While full, commits and spills fail with disk_full. A failed commit is visible all the same,
  /// as with RocksDB, where the write succeeds and the flush does not.
  void set_disk_full(bool full);

 private:
  friend class FakeStore;

  using Rows = std::map<std::string, std::string>;
  using Tables = std::map<Table, Rows>;
  /// Changes not known to be durable: a spill, or a commit that failed.
  struct Pending {
    bool commit;
    std::vector<RowChange> changes;
  };

  static void apply(Tables& tables, const RowChange& change);
  static void apply_all(Tables& tables, const std::vector<RowChange>& changes);
  void settle();
  void crash_locked();
  std::uint64_t begin_life();

  mutable std::mutex mutex_;
  Random random_;
  Tables durable_;
  Tables visible_;
  std::vector<Pending> pending_;
  std::uint64_t life_ = 0;
  bool crash_in_commit_ = false;
  bool disk_full_ = false;
};

/// A CheckpointStore in memory, for the simulation: one life of a process over a FakeStoreMedia.
class FakeStore final : public CheckpointStore {
 public:
  /// A new process opens what `media` holds; the process before it, if any, ends as by a crash:
  /// closing a store commits nothing.
  explicit FakeStore(std::shared_ptr<FakeStoreMedia> media);

  Status commit(const RowBatch& batch) override;
  Status spill(const RowBatch& batch) override;
  Result<std::optional<std::string>> get(Table table, std::string_view key) const override;
  Result<std::vector<Row>> scan(const Range& range) const override;

 private:
  [[nodiscard]] Status check_alive() const;

  std::shared_ptr<FakeStoreMedia> media_;
  std::uint64_t life_;
};

}  // namespace baton
