#include "storage/rocks/rocks_settings.h"

#include <algorithm>

#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

namespace baton {
namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kMib = 1024 * kKib;
constexpr int kLevel0FilesMax = 60;

// LZ4 costs next to nothing and gives up early on payloads that do not compress.
rocksdb::CompressionType cheapest_compression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool lz4 =
      std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  return lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

rocksdb::BlockBasedTableOptions block_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions block;
  block.block_cache = cache;
  // Rows are read by forward scans; bigger blocks make a quarter of the index entries.
  block.block_size = 16 * kKib;
  // Ten million rows have tens of MiB of index and filter blocks: in the cache they are bounded,
  // outside they are not. They are partitioned, so that a scan loads only the parts it crosses;
  // data never evicts them.
  block.cache_index_and_filter_blocks = true;
  block.cache_index_and_filter_blocks_with_high_priority = true;
  block.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  block.partition_filters = true;
  block.metadata_block_size = 16 * kKib;
  block.pin_top_level_index_and_filter = true;
  // For dedup ids and cancelled ids, most of which are absent.
  block.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  block.format_version = 5;
  return block;
}

}  // namespace

rocksdb::DBOptions rocks_db_options(const RocksOptions& options) {
  rocksdb::DBOptions db;
  if (options.env != nullptr) db.env = options.env;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  // A commit spans tables and RocksDB's log is off: tables must reach the disk together, also when
  // a full write buffer and not a commit makes them. A buffer is switched only between batches, so
  // a batch is never cut, however large.
  db.atomic_flush = true;
  // What is only in memory is in the journal as well: closing need not write it.
  db.avoid_flush_during_shutdown = true;
  db.paranoid_checks = true;
  db.db_write_buffer_size = options.write_buffers_bytes_max;
  // One flush and one compaction at a time: the cores belong to the shards. Also, RocksDB
  // before 8.7 can hang when one of two overlapping atomic flushes fails (its pull request 11872).
  db.max_background_jobs = 2;
  // Bounds the memory of open files; ten million rows of 1 KiB are some two hundred.
  db.max_open_files = 512;
  // Writes a file to the disk as it grows, so that the fsync at its end is short.
  db.bytes_per_sync = kMib;
  // Each input file of a compaction has a buffer of this size.
  db.compaction_readahead_size = kMib;
  // The folder's LOG is for operators: warnings only, and bounded.
  db.info_log_level = rocksdb::WARN_LEVEL;
  db.max_log_file_size = 4 * kMib;
  db.keep_log_file_num = 4;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  // Every commit appends to the manifest; it is rewritten when it is larger than this. An opening
  // store writes a new one, for which the reserve file has room (kReserveFileBytes). Ten thousand
  // tables take less.
  db.max_manifest_file_size = 2 * kMib;
  return db;
}

rocksdb::ColumnFamilyOptions rocks_table_options(const RocksOptions& options,
                                                 const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::ColumnFamilyOptions table;
  table.table_factory.reset(rocksdb::NewBlockBasedTableFactory(block_options(cache)));
  table.write_buffer_size = options.write_buffer_bytes;
  // One buffer fills, two wait for the disk; then writers wait, which bounds the memory.
  table.max_write_buffer_number = 3;
  // Nine tables, most of them small: the default (an eighth of the buffer) would waste 4 MiB on
  // each.
  table.arena_block_size = std::min(256 * kKib, options.write_buffer_bytes / 8);
  // The same on all levels, or a file could not move down a level without being rewritten: a queue
  // that fills in key order is then written once.
  table.compression = cheapest_compression();
  table.compression_per_level.clear();
  table.bottommost_compression = rocksdb::kDisableCompressionOption;
  // Levels, filled from the last one up: tombstones of a draining queue meet their rows after one
  // step and both are gone.
  table.compaction_style = rocksdb::kCompactionStyleLevel;
  table.level_compaction_dynamic_level_bytes = true;
  // Only one compaction runs at a time: none may be so large (RocksDB's default: 25 files) that
  // level 0, where the commits arrive, fills up behind it.
  table.max_compaction_bytes = 256 * kMib;
  // A draining queue makes many small files of tombstones: more of them may wait than RocksDB's
  // default (36) before writers stop; scans have to merge them meanwhile. Writers are stopped and
  // never slowed: when slowing them, RocksDB was measured to hold a commit for twelve seconds.
  table.level0_file_num_compaction_trigger = 4;
  table.level0_slowdown_writes_trigger = kLevel0FilesMax;
  table.level0_stop_writes_trigger = kLevel0FilesMax;
  table.soft_pending_compaction_bytes_limit = 0;
  return table;
}

rocksdb::WriteOptions rocks_write_options() {
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  write.no_slowdown = true;
  return write;
}

rocksdb::FlushOptions rocks_flush_options() {
  rocksdb::FlushOptions flush;
  flush.wait = false;
  flush.allow_write_stall = true;
  return flush;
}

}  // namespace baton
