#include "core/kv/facts.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace baton {
namespace {

constexpr std::uint8_t kVersion1 = 1;  // Of the bodies of format 1.

// Kinds behind the first ones say what a reader shall do that does not know them.
constexpr std::size_t kFirstKinds = 5;
constexpr std::array<std::string_view, std::variant_size_v<KvFact>> kNames{
    "KvBucketCreated", "KvBucketDeleted", "KvPut", "KvRemoved", "KvExpired"};

/// Every setting of a bucket, with the number of its field.
constexpr std::array<std::pair<std::uint64_t, std::uint64_t KvSettings::*>, 4> kSettings{{
    {1, &KvSettings::value_bytes_max},
    {2, &KvSettings::keys_max},
    {3, &KvSettings::history_changes_max},
    {4, &KvSettings::history_bytes_max},
}};

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

void read_created(Decoder& in, KvBucketCreated& fact, KvSettings (*settings)(Decoder&)) {
  fact.bucket = BucketId{in.varint()};
  fact.name = decode_bucket_name(in);
  fact.settings = settings(in);
  fact.revision = Revision{in.varint()};
  fact.at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, KvBucketCreated& fact) { read_created(in, fact, decode_kv_settings); }
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
  out.blob_of(0, [&] {
    for (const auto& [number, value] : kSettings) {
      if (settings.*value != KvSettings{}.*value) put_field(out, number, settings.*value);
    }
  });
}

KvSettings decode_kv_settings(Decoder& in) {
  KvSettings settings;
  Decoder bytes(in.blob());
  for (FieldReader field(bytes); field.next();) {
    const auto* const known =
        std::ranges::find(kSettings, field.number(), [](const auto& each) { return each.first; });
    if (known == kSettings.end()) {
      field.skip();
    } else {
      settings.*(known->second) = field.value().varint();
    }
  }
  if (!bytes.ok()) in.fail_as(bytes, "settings");
  if (!validate(settings).has_value()) in.fail();
  return settings;
}

KvSettings decode_kv_settings_1(Decoder& in) {
  KvSettings settings;
  for (const auto& [number, value] : kSettings) settings.*value = in.varint();
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

constinit const FactSet kKvFacts{.owner = FactOwner{4}, .name = "buckets", .kinds = kNames};

void encode(Encoder& out, const KvFact& fact) {
  const auto* const put = std::get_if<KvPut>(&fact);
  const std::size_t about = put != nullptr ? put->key.size() + put->value.size() + 16 : 0;
  write_fact<kFirstKinds>(out, kKvFacts, fact, about,
                          [&](const auto& happened) { body(out, happened); });
}

Result<KvFact> decode_kv_fact(const FactFrame& frame) {
  return read_fact<KvFact>(kKvFacts, frame,
                           [](Decoder& in, auto& happened) { read(in, happened); });
}

Result<KvFact> decode_kv_fact(Decoder& in) { return decode_kv_fact(read_frame(in)); }

Result<KvFact> decode_kv_fact_1(Decoder& in) {
  const std::uint8_t tag = in.u8();
  const std::uint8_t version = in.u8();
  KvFact fact;
  const auto body_1 = [&]<class Fact>(Fact& one) {
    if constexpr (std::is_same_v<Fact, KvBucketCreated>) {
      read_created(in, one, decode_kv_settings_1);
    } else {
      read(in, one);
    }
  };
  if (version != kVersion1 || !read_tagged(tag, fact, body_1) || !in.ok()) {
    return Error{Errc::malformed, "a fact of the buckets, format 1"};
  }
  return fact;
}

}  // namespace baton
