#include "core/kv/rows.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/growing.h"
#include "core/kv/facts.h"

namespace baton {
namespace {

constexpr std::uint8_t kRowVersion1 = 1;  // Of all rows in format 1, and of the row "next".
constexpr std::uint8_t kRowVersion2 = 2;

Error bad_row(std::string_view part, std::string_view table) {
  return {Errc::store_corrupt,
          fmt::format("the {} of a row of the table '{}' cannot be read", part, table)};
}

/// Reads the fields that end a row; the error, if any of it cannot be read.
Status finish_row(std::string_view table, Decoder& in) {
  skip_fields(in);
  if (in.ok()) return {};
  return unreadable(in, Errc::store_corrupt, fmt::format("a row of the table '{}'", table));
}

void read_entry(Decoder& in, KvEntry& entry) {
  entry.revision = Revision{in.varint()};
  entry.created_revision = Revision{in.varint()};
  entry.version = in.varint();
  entry.expires_at = {in.fixed<std::int64_t>()};
}

}  // namespace

std::string bucket_row_key(BucketId bucket) {
  std::string key;
  Encoder(key).big_u64(bucket.value);
  return key;
}

std::string entry_row_key(BucketId bucket, std::string_view key) {
  std::string row = bucket_row_key(bucket);
  row.append(key);
  return row;
}

std::string encode_row(const KvBucketRow& row) {
  std::string value;
  Encoder out(value);
  out.u8(kRowVersion2);
  out.blob(row.name);
  encode(out, row.settings);
  out.varint(row.revision.value);
  out.fixed(row.created_at.ns);
  return value;
}

std::string encode_row(const KvNextRow& row) {
  std::string value;
  Encoder out(value);
  out.u8(kRowVersion1);
  out.varint(row.bucket.value);
  out.varint(row.revision.value);
  return value;
}

std::string encode_row(const KvEntry& entry) {
  std::string value;
  value.reserve(40 + entry.value.size());
  Encoder out(value);
  out.u8(kRowVersion2);
  out.blob_of(0, [&] {
    out.varint(entry.revision.value);
    out.varint(entry.created_revision.value);
    out.varint(entry.version);
    out.fixed(entry.expires_at.ns);
  });
  out.raw(entry.value);
  return value;
}

Result<BucketId> decode_bucket_row_key(std::string_view key) {
  Decoder in(key);
  const BucketId bucket{in.big_u64()};
  if (!in.finish()) return bad_row("key", "kv_buckets");
  return bucket;
}

Result<KvEntryRowKey> decode_entry_row_key(std::string_view key) {
  Decoder in(key);
  const BucketId bucket{in.big_u64()};
  if (!in.ok() || !validate_kv_key(in.rest()).has_value()) return bad_row("key", "kv_entries");
  return KvEntryRowKey{.bucket = bucket, .key = std::string(in.rest())};
}

Result<KvBucketRow> decode_bucket_row(std::string_view value) {
  Decoder in(value);
  KvBucketRow row;
  const std::uint8_t version = in.u8();
  if (version != kRowVersion1 && version != kRowVersion2) return bad_row("value", "kv_buckets");
  row.old = version == kRowVersion1;
  row.name = decode_bucket_name(in);
  row.settings = row.old ? decode_kv_settings_1(in) : decode_kv_settings(in);
  row.revision = Revision{in.varint()};
  row.created_at = {in.fixed<std::int64_t>()};
  BATON_TRY_STATUS(finish_row("kv_buckets", in));
  return row;
}

Result<KvNextRow> decode_kv_next_row(std::string_view value) {
  Decoder in(value);
  KvNextRow row;
  if (in.u8() != kRowVersion1) return bad_row("value", "kv_buckets");
  row.bucket = BucketId{in.varint()};
  row.revision = Revision{in.varint()};
  BATON_TRY_STATUS(finish_row("kv_buckets", in));
  return row;
}

Result<KvEntry> decode_entry_row(std::string_view value) {
  Decoder in(value);
  KvEntry entry;
  const std::uint8_t version = in.u8();
  if (version != kRowVersion1 && version != kRowVersion2) return bad_row("value", "kv_entries");
  if (version == kRowVersion1) {
    read_entry(in, entry);
  } else {
    Decoder head(in.blob());
    read_entry(head, entry);
    BATON_TRY_STATUS(finish_row("kv_entries", head));
  }
  const bool in_order = Revision{} < entry.created_revision &&
                        entry.created_revision <= entry.revision && entry.version >= 1;
  if (!in.ok() || !in_order || in.rest().size() > limits::kKvValueBytesMax) {
    return bad_row("value", "kv_entries");
  }
  entry.value = in.rest();
  return entry;
}

}  // namespace baton
