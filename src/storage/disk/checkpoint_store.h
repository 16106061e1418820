#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rows.h"

namespace baton {

/// Tables of rows, ordered by key: the state of one shard as of a journal position. Every call may
/// block on the disk, so a shard's thread calls none of them. Thread-safe.
class CheckpointStore {
 public:
  using Range = RowRange;

  CheckpointStore() = default;
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;
  virtual ~CheckpointStore() = default;

  /// Applies the batch to all tables at once, and makes the batch and everything spilled before it
  /// durable. After a crash either all of the batch is there or none of it.
  virtual Status commit(const RowBatch& batch) = 0;
  /// Adds rows ahead of a commit: readable at once, but a crash may lose any of them.
  virtual Status spill(const RowBatch& batch) = 0;
  virtual Result<std::optional<std::string>> get(Table table, std::string_view key) const = 0;
  virtual Result<std::vector<Row>> scan(const Range& range) const = 0;
};

}  // namespace baton
