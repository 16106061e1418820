#include "core/kv/facts.h"

#include "base/tagged.h"

namespace baton {
namespace {

constexpr std::uint8_t kFactFormat = 1;

/// A change of a key without a value: what is gone has none.
template <class Gone>
void put_gone(Encoder& out, const Gone& fact) {
  out.varint(fact.bucket.value);
  out.varint(fact.revision.value);
  out.blob(fact.key);
}

void body(Encoder& out, const KvBucketCreated& fact) {
  out.varint(fact.bucket.value);
  out.blob(fact.name);
  encode(out, fact.settings);
  out.varint(fact.revision.value);
  out.fixed(fact.at.ns);
}
void body(Encoder& out, const KvBucketDeleted& fact) { out.varint(fact.bucket.value); }
void body(Encoder& out, const KvPut& fact) {
  put_gone(out, fact);
  out.blob(fact.value);
  out.fixed(fact.expires_at.ns);
}
void body(Encoder& out, const KvRemoved& fact) { put_gone(out, fact); }
void body(Encoder& out, const KvExpired& fact) { put_gone(out, fact); }

template <class Change>
void read_change(Decoder& in, Change& fact) {
  fact.bucket = BucketId{in.varint()};
  fact.revision = Revision{in.varint()};
  const std::string_view key = in.blob();
  // 0 stands for "no revision", so no change can have it.
  if (fact.revision == Revision{} || !validate_kv_key(key).has_value()) in.fail();
  if (in.ok()) fact.key = key;
}

void read(Decoder& in, KvBucketCreated& fact) {
  fact.bucket = BucketId{in.varint()};
  fact.name = decode_bucket_name(in);
  fact.settings = decode_kv_settings(in);
  fact.revision = Revision{in.varint()};
  fact.at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, KvBucketDeleted& fact) { fact.bucket = BucketId{in.varint()}; }
void read(Decoder& in, KvPut& fact) {
  read_change(in, fact);
  fact.value = decode_kv_value(in);
  fact.expires_at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, KvRemoved& fact) { read_change(in, fact); }
void read(Decoder& in, KvExpired& fact) { read_change(in, fact); }

}  // namespace

void encode(Encoder& out, const KvSettings& settings) {
  out.varint(settings.value_bytes_max);
  out.varint(settings.keys_max);
  out.varint(settings.history_changes_max);
  out.varint(settings.history_bytes_max);
}

KvSettings decode_kv_settings(Decoder& in) {
  KvSettings settings;
  settings.value_bytes_max = in.varint();
  settings.keys_max = in.varint();
  settings.history_changes_max = in.varint();
  settings.history_bytes_max = in.varint();
  if (!validate(settings).has_value()) in.fail();
  return settings;
}

std::string decode_bucket_name(Decoder& in) {
  const std::string_view name = in.blob();
  if (!validate_bucket_name(name).has_value()) in.fail();
  return in.ok() ? std::string(name) : std::string();
}

std::string decode_kv_value(Decoder& in) {
  const std::string_view value = in.blob();
  if (value.size() > limits::kKvValueBytesMax) in.fail();
  return in.ok() ? std::string(value) : std::string();
}

void encode(Encoder& out, const KvFact& fact) {
  out.u8(static_cast<std::uint8_t>(fact.index()));
  out.u8(kFactFormat);
  std::visit([&](const auto& happened) { body(out, happened); }, fact);
}

Result<KvFact> decode_kv_fact(Decoder& in) {
  const std::uint8_t tag = in.u8();
  const std::uint8_t format = in.u8();
  KvFact fact;
  if (format != kFactFormat || !read_tagged(tag, fact, [&](auto& one) { read(in, one); }) ||
      !in.ok()) {
    return Error{Errc::malformed, "a fact of the buckets"};
  }
  return fact;
}

}  // namespace baton
