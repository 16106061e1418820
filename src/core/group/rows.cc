#include "core/group/rows.h"

#include "base/bytes.h"
#include "base/growing.h"
#include "core/group/facts.h"

namespace baton {
namespace {

constexpr std::uint8_t kRowFormat = 1;

Error bad_row(std::string_view part) {
  return {Errc::store_corrupt,
          "the " + std::string(part) + " of a row of the table 'groups' cannot be read"};
}

}  // namespace

std::string group_row_key(const GroupId& group) {
  std::string key;
  key.reserve(10 + group.stream.size() + group.name.size());
  Encoder out(key);
  out.big_u16(static_cast<std::uint16_t>(group.stream.size()));
  out.raw(group.stream);
  out.big_u64(group.partition);
  out.raw(group.name);
  return key;
}

Result<GroupId> decode_group_row_key(std::string_view key) {
  Decoder in(key);
  GroupId group;
  group.stream = in.raw(in.big_u16());
  const std::uint64_t partition = in.big_u64();
  if (!in.ok() || partition >= limits::kPartitionsPerStream) return bad_row("key");
  group.partition = static_cast<std::uint32_t>(partition);
  group.name = in.rest();
  if (!validate(group).has_value()) return bad_row("key");
  return group;
}

std::string encode_row(const coordinator_state::Record& record) {
  std::string value;
  Encoder out(value);
  out.u8(kRowFormat);
  encode_kind(out, record.single_active, record.handover);
  encode(out, record.partition_index);
  out.varint(record.generation.value);
  out.fixed(record.generation_at.ns);
  out.u8(record.offset.has_value() ? 1 : 0);
  if (record.offset.has_value()) {
    out.varint(record.offset->value);
    out.fixed(record.offset_at.ns);
  }
  return value;
}

Result<coordinator_state::Record> decode_group_row(std::string_view value) {
  Decoder in(value);
  if (in.u8() != kRowFormat) return bad_row("value");
  coordinator_state::Record record;
  decode_kind(in, record.single_active, record.handover);
  record.partition_index = decode_partition_index(in);
  record.generation = Generation{in.varint()};
  record.generation_at = {in.fixed<std::int64_t>()};
  if (decode_flag(in)) {
    record.offset = GroupOffset{in.varint()};
    record.offset_at = {in.fixed<std::int64_t>()};
  }
  skip_fields(in);
  if (!in.ok()) return unreadable(in, Errc::store_corrupt, "a row of the table 'groups'");
  return record;
}

}  // namespace baton
