#pragma once

#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/kv/types.h"

/// What the journal holds of buckets. Watches are not truth: they make no facts, and their clients
/// come back with the last revision they saw.
///
///   fact              kind u8, version u8 (1), then by kind:
///   0 KvBucketCreated bucket varint, name blob (1 to 200 bytes), settings, revision varint, at i64
///   1 KvBucketDeleted bucket varint
///   2 KvPut           bucket varint, revision varint, key, value blob (to 16 MiB),
///                     expires_at i64 (the largest: never)
///   3 KvRemoved       bucket varint, revision varint, key
///   4 KvExpired       bucket varint, revision varint, key
///   settings          value_bytes_max, keys_max, history_changes_max, history_bytes_max: varints
///   key               blob (1 to 512 bytes)
///   blob              length varint, bytes. Numbers are little-endian.
namespace baton {

struct KvBucketCreated {
  BucketId bucket;
  std::string name;
  KvSettings settings;
  Revision revision;  // What its revisions go on from: past those of any bucket before it.
  Instant at;
};
/// With all its keys.
struct KvBucketDeleted {
  BucketId bucket;
};
struct KvPut {
  BucketId bucket;
  Revision revision;
  std::string key;
  std::string value;
  Instant expires_at = Instant::never();
};
struct KvRemoved {
  BucketId bucket;
  Revision revision;
  std::string key;
};
/// Its time-to-live has run out.
struct KvExpired {
  BucketId bucket;
  Revision revision;
  std::string key;
};

/// The byte a fact begins with is its place here: the list only grows at its end.
using KvFact = std::variant<KvBucketCreated, KvBucketDeleted, KvPut, KvRemoved, KvExpired>;

void encode(Encoder& out, const KvFact& fact);
/// Reads one fact; fails with malformed.
Result<KvFact> decode_kv_fact(Decoder& in);

/// Parts that facts and rows share. Decoding checks limits; what is out of them fails the decoder.
void encode(Encoder& out, const KvSettings& settings);
KvSettings decode_kv_settings(Decoder& in);
std::string decode_bucket_name(Decoder& in);
std::string decode_kv_value(Decoder& in);

}  // namespace baton
