#include "base/growing.h"

#include <fmt/format.h>

namespace baton {
namespace {

void put_key(Encoder& out, std::uint64_t number, Need need) {
  out.varint(number << 1U | (need.since != 0 ? 1U : 0U));
  if (need.since != 0) out.varint(need.since);
}

Error too_new(std::string_view what, std::uint64_t since) {
  return {Errc::store_too_new,
          fmt::format("{} must be understood and came with format {}; this version of baton knows "
                      "formats up to {}: run a newer version",
                      what, since, kStoreFormat)};
}

}  // namespace

void put_field(Encoder& out, std::uint64_t number, std::string_view value, Need need) {
  put_key(out, number, need);
  out.blob(value);
}

void put_field(Encoder& out, std::uint64_t number, std::uint64_t value, Need need) {
  put_key(out, number, need);
  out.varint(varint_bytes(value));
  out.varint(value);
}

bool FieldReader::next() {
  if (!value_.ok()) in_.fail_as(value_);
  if (in_.empty()) return false;
  const std::uint64_t key = in_.varint();
  const bool required = (key & 1U) != 0;
  number_ = key >> 1U;
  since_ = required ? in_.varint() : 0;
  value_ = Decoder(in_.blob());
  if (number_ == 0 || (required && since_ == 0)) in_.fail();
  return in_.ok();
}

void FieldReader::skip() {
  if (since_ != 0) in_.refuse({.number = number_, .since = since_, .where = {}});
}

void skip_unknown_fields(Decoder& in) {
  for (FieldReader fields(in); fields.next();) fields.skip();
}

Error unreadable(const Decoder& in, Errc otherwise, std::string_view what) {
  const UnknownPart& part = in.unknown();
  if (part.since == 0) return {otherwise, fmt::format("{} cannot be read", what)};
  const std::string where = part.where.empty() ? "" : fmt::format(" of the {}", part.where);
  return too_new(fmt::format("field {}{} in {}", part.number, where, what), part.since);
}

Status skip_frame(const FactFrame& frame, std::string_view owner_name) {
  const std::string what = fmt::format("fact {} of the {}", frame.kind, owner_name);
  Decoder in(frame.body);
  const std::uint64_t since = in.varint();
  if (!in.ok()) return Error{Errc::malformed, what + " cannot be read"};
  if (since != 0) return too_new(what, since);
  return {};
}

Error unreadable_fact(const FactSet& set, const FactFrame& frame, const Decoder& in) {
  if (frame.owner != set.owner) {
    return {Errc::malformed,
            fmt::format("machine {} has no facts of the {}", frame.owner.value, set.name)};
  }
  if (frame.kind < set.kinds.size()) {
    return unreadable(in, Errc::malformed,
                      fmt::format("a fact '{}' of the {}", set.kinds[frame.kind], set.name));
  }
  const Status skipped = skip_frame(frame, set.name);
  if (!skipped.has_value()) return skipped.error();
  return {Errc::malformed, fmt::format("fact {} of the {} is unknown", frame.kind, set.name)};
}

}  // namespace baton
