#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/rows.h"
#include "core/kv/types.h"

/// The rows of the checkpoint that belong to buckets. Rows of kv_buckets are loaded before those of
/// kv_entries. A bucket's history has no rows.
///
///   kv_buckets  key    bucket u64 big-endian
///               value  version u8 (2), name blob, settings (see facts.h), revision varint,
///                      created_at i64, fields
///               key    "next"
///               value  version u8 (1), next bucket varint, revision that a new bucket goes on from
///                      varint, fields
///   kv_entries  key    bucket u64 big-endian, key (the rest)
///               value  version u8 (2), blob of: revision varint, created_revision varint, version
///                      of the key varint, expires_at i64, fields; then the value (the rest)
///
/// Fields are numbered (base/growing.h); there are none yet. Version 1 of the other two has
/// settings of format 1, and no length in kv_entries; it is read, and no longer written.
namespace baton {

namespace tables {
inline constexpr Table kKvBuckets{14};
inline constexpr Table kKvEntries{15};

inline constexpr std::array<TableName, 2> kKv{
    {{kKvBuckets, "kv_buckets"}, {kKvEntries, "kv_entries"}}};
}  // namespace tables

inline constexpr std::string_view kKvNextRowKey = "next";

struct KvBucketRow {
  std::string name;
  KvSettings settings;
  Revision revision;
  Instant created_at;
  bool old = false;  // Read from format 1, which is no longer written.
};
struct KvNextRow {
  BucketId bucket;
  Revision revision;
};
struct KvEntryRowKey {
  BucketId bucket;
  std::string key;
};

std::string bucket_row_key(BucketId bucket);
std::string entry_row_key(BucketId bucket, std::string_view key);
std::string encode_row(const KvBucketRow& row);
std::string encode_row(const KvNextRow& row);
/// Without the key, which is in the row's key.
std::string encode_row(const KvEntry& entry);

// Each fails with store_corrupt.
Result<BucketId> decode_bucket_row_key(std::string_view key);
Result<KvEntryRowKey> decode_entry_row_key(std::string_view key);
Result<KvBucketRow> decode_bucket_row(std::string_view value);
Result<KvNextRow> decode_kv_next_row(std::string_view value);
Result<KvEntry> decode_entry_row(std::string_view value);

}  // namespace baton
