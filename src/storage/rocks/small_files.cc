#include "storage/rocks/small_files.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/options.h>

namespace baton {
namespace {

constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 20U;
// How many neighbours are merged: a merged file is rewritten at most once in this many commits.
constexpr std::size_t kNeighbours = 16;

/// The first files of the level that are worth merging; empty when there are too few.
std::vector<std::string> small_neighbours(const rocksdb::LevelMetaData& level) {
  std::vector<std::string> names;
  for (const rocksdb::SstFileMetaData& file : level.files) {
    const bool small = file.size < kSmallBytes && !file.being_compacted;
    if (small) names.push_back(file.db_path + file.name);
    if (!small && names.size() >= kNeighbours) break;
    if (!small) names.clear();
  }
  if (names.size() < kNeighbours) names.clear();
  return names;
}

}  // namespace

void merge_small_files(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* table) {
  rocksdb::ColumnFamilyMetaData all;
  db.GetColumnFamilyMetaData(table, &all);
  for (const rocksdb::LevelMetaData& level : all.levels) {
    // Level 0 is left to RocksDB: its files are in order of time, not of keys.
    if (level.level == 0) continue;
    const std::vector<std::string> names = small_neighbours(level);
    if (names.empty()) continue;
    rocksdb::CompactionOptions options;
    options.compression = rocksdb::kDisableCompressionOption;  // The compression of the table.
    db.CompactFiles(options, table, names, level.level).PermitUncheckedError();
  }
}

}  // namespace baton
