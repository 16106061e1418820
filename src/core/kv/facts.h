#pragma once

#include <string>
#include <variant>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"
#include "base/time.h"
#include "core/kv/types.h"

/// What the journal holds of buckets. Watches are not truth: they make no facts, and their clients
/// come back with the last revision they saw.
///
/// Each is framed and can gain fields as base/growing.h says:
///
///   0 KvBucketCreated bucket varint, name blob (1 to 200 bytes), settings, revision varint, at i64
///   1 KvBucketDeleted bucket varint
///   2 KvPut           bucket varint, revision varint, key, value blob (to 16 MiB),
///                     expires_at i64 (the largest: never)
///   3 KvRemoved       bucket varint, revision varint, key
///   4 KvExpired       bucket varint, revision varint, key
///   settings          blob of fields: 1 value_bytes_max, 2 keys_max, 3 history_changes_max,
///                     4 history_bytes_max, each a varint; absent: KvSettings{} has it
///   key               blob (1 to 512 bytes)
///   blob              length varint, bytes. Numbers are little-endian.
///
/// Format 1 has kind u8 and version u8 (1) before the bodies; its settings are the four varints.
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

/// The number of a kind is its place here: the list only grows at its end.
using KvFact = std::variant<KvBucketCreated, KvBucketDeleted, KvPut, KvRemoved, KvExpired>;

extern const FactSet kKvFacts;

void encode(Encoder& out, const KvFact& fact);
/// Fails with malformed, or store_too_new.
Result<KvFact> decode_kv_fact(const FactFrame& frame);
Result<KvFact> decode_kv_fact(Decoder& in);
/// Reads one fact of format 1; fails with malformed.
Result<KvFact> decode_kv_fact_1(Decoder& in);

/// Parts that facts and rows share. Decoding checks limits; a value outside fails the decoder.
void encode(Encoder& out, const KvSettings& settings);
KvSettings decode_kv_settings(Decoder& in);
KvSettings decode_kv_settings_1(Decoder& in);
std::string decode_bucket_name(Decoder& in);
std::string decode_kv_value(Decoder& in);

}  // namespace baton
