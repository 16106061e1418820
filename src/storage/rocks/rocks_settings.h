#pragma once

#include <memory>

#include <rocksdb/cache.h>
#include <rocksdb/options.h>

#include "storage/rocks/rocks_store.h"

namespace baton {

/// How we run RocksDB, each setting with its reason.
rocksdb::DBOptions rocks_db_options(const RocksOptions& options);
/// The options of every table: the tables share one cache.
rocksdb::ColumnFamilyOptions rocks_table_options(const RocksOptions& options,
                                                 const std::shared_ptr<rocksdb::Cache>& cache);
/// Row changes never go to RocksDB's own log: the journal is the log. Fails with Incomplete instead
/// of waiting when writers have to wait.
rocksdb::WriteOptions rocks_write_options();
/// Begins at once, even if it delays writers: a checkpoint that waits for a quiet moment never
/// ends.
rocksdb::FlushOptions rocks_flush_options();

}  // namespace baton
