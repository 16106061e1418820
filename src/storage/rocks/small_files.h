#pragma once

namespace rocksdb {
class DB;
class ColumnFamilyHandle;
}  // namespace rocksdb

namespace baton {

/// Merges the table's small files where many lie side by side. Every commit makes some; RocksDB
/// moves a file whose keys overlap no other down its levels unchanged, and never touches it again:
/// without this, a bucket that gets a key a minute would have a file, and an open descriptor, for
/// each key. A failure here is ignored, and merging is tried again after the next commit.
void merge_small_files(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* table);

}  // namespace baton
