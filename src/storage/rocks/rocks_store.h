#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/rows.h"
#include "storage/disk/checkpoint_store.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace baton {

/// What one store may use. A process that opens several (one per shard) divides the bytes itself.
struct RocksOptions {
  /// Memory for blocks read from files, with their indexes and filters.
  std::size_t cache_bytes = std::size_t{64} << 20U;
  /// Rows of one table that wait in memory for the disk; a larger batch is still taken whole.
  std::size_t write_buffer_bytes = std::size_t{32} << 20U;
  /// The same over all tables.
  std::size_t write_buffers_bytes_max = std::size_t{64} << 20U;
  /// Bytes of the disk that rows leave free, so that RocksDB's own records still fit when the disk
  /// is full for rows (see DiskReserve).
  std::size_t disk_reserve_bytes = std::size_t{64} << 20U;
  /// For tests: the operating system RocksDB sees. Not owned; null is the real one.
  rocksdb::Env* env = nullptr;
};

/// The size of a table, for operators. Both numbers are estimates: a deleted row counts until
/// RocksDB has compacted it away.
struct TableStats {
  std::string name;
  std::uint64_t rows_estimate;
  std::uint64_t bytes;
};

/// Tables as RocksDB column families, with RocksDB's own log off: what a commit does not flush, the
/// journal still holds. Owned by one shard; thread-safe.
///
/// Invariant: the files on disk always hold all of a commit or none of it, over all tables.
///
/// A commit or spill that fails may still take effect later; the caller repeats it, or stops. After
/// disk_full it is repeated until there is space. After any other error what the disk holds is not
/// known: commit and spill fail from then on, and the process has to end and recover.
class RocksStore : public CheckpointStore {
 public:
  /// One entry per table, in the order of opening.
  [[nodiscard]] virtual std::vector<TableStats> table_stats() const = 0;
};

/// Opens the store in `folder`, creating the folder and missing tables. Fails with store_too_new if
/// the folder holds tables that are not in `tables`: a newer version wrote rows there that we would
/// not maintain.
Result<std::unique_ptr<RocksStore>> open_rocks_store(const std::string& folder,
                                                     std::span<const TableName> tables,
                                                     const RocksOptions& options = {});

/// Opens the store of a stopped broker without changing a byte in its folder; a table that the
/// folder does not hold is empty, and commit and spill fail. A process that has the folder open
/// itself must not call this: checking the lock file would release its lock.
Result<std::unique_ptr<RocksStore>> open_rocks_store_read_only(const std::string& folder,
                                                               std::span<const TableName> tables);

}  // namespace baton
