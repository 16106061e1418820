#include "core/group/facts.h"

#include <array>
#include <limits>
#include <string_view>

namespace baton {
namespace {

constexpr std::uint8_t kVersion1 = 1;  // The version in bodies of format 1.

// A kind's number is its index in CoordinatorFact, so that list only grows at its end. Kinds after
// the first ones say what a reader that does not know them has to do.
constexpr std::size_t kFirstKinds = 4;
constexpr std::array<std::string_view, std::variant_size_v<CoordinatorFact>> kNames{
    "GroupCreated", "GenerationTaken", "OffsetStored", "GroupForgotten"};

void body(Encoder& out, const GroupCreated& fact) {
  encode(out, fact.group);
  encode_kind(out, fact.single_active, fact.handover);
  encode(out, fact.partition_index);
}
void body(Encoder& out, const GenerationTaken& fact) {
  encode(out, fact.group);
  out.varint(fact.generation.value);
  out.fixed(fact.at.ns);
}
void body(Encoder& out, const OffsetStored& fact) {
  encode(out, fact.group);
  out.varint(fact.epoch.value);
  out.varint(fact.offset.value);
  out.fixed(fact.at.ns);
}
void body(Encoder& out, const GroupForgotten& fact) { encode(out, fact.group); }

void read(Decoder& in, GroupCreated& fact) {
  fact.group = decode_group_id(in);
  decode_kind(in, fact.single_active, fact.handover);
  fact.partition_index = decode_partition_index(in);
}
void read(Decoder& in, GenerationTaken& fact) {
  fact.group = decode_group_id(in);
  fact.generation = Generation{in.varint()};
  fact.at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, OffsetStored& fact) {
  fact.group = decode_group_id(in);
  fact.epoch = Generation{in.varint()};
  fact.offset = GroupOffset{in.varint()};
  fact.at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, GroupForgotten& fact) { fact.group = decode_group_id(in); }

}  // namespace

void encode(Encoder& out, const GroupId& group) {
  out.blob(group.stream);
  out.varint(group.partition);
  out.blob(group.name);
}

GroupId decode_group_id(Decoder& in) {
  GroupId group;
  group.stream = in.blob();
  const std::uint64_t partition = in.varint();
  group.name = in.blob();
  if (partition >= limits::kPartitionsPerStream) in.fail();
  group.partition = static_cast<std::uint32_t>(partition);
  if (!in.ok() || !validate(group).has_value()) {
    in.fail();
    return {};
  }
  return group;
}

void encode(Encoder& out, PartitionIndex index) {
  out.varint(static_cast<std::uint64_t>(static_cast<std::int64_t>(index.value) + 1));
}

PartitionIndex decode_partition_index(Decoder& in) {
  const std::uint64_t shifted = in.varint();
  if (shifted > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) in.fail();
  return in.ok() ? PartitionIndex{static_cast<std::int32_t>(shifted) - 1} : kSimple;
}

bool decode_flag(Decoder& in) {
  const std::uint8_t flag = in.u8();
  if (flag > 1) in.fail();
  return flag == 1;
}

void encode_kind(Encoder& out, bool single_active, Handover handover) {
  const bool strict = single_active && handover == Handover::strict;
  out.u8(strict ? 2 : std::uint8_t{single_active});
}

void decode_kind(Decoder& in, bool& single_active, Handover& handover) {
  const std::uint8_t kind = in.u8();
  if (kind > 2) in.fail();
  single_active = kind != 0;
  handover = kind == 2 ? Handover::strict : Handover::at_once;
}

constinit const FactSet kCoordinatorFacts{.owner = FactOwner{3}, .name = "groups", .kinds = kNames};

void encode(Encoder& out, const CoordinatorFact& fact) {
  write_fact<kFirstKinds>(out, kCoordinatorFacts, fact, 0,
                          [&](const auto& happened) { body(out, happened); });
}

Result<CoordinatorFact> decode_coordinator_fact(const FactFrame& frame) {
  return read_fact<CoordinatorFact>(kCoordinatorFacts, frame,
                                    [](Decoder& in, auto& happened) { read(in, happened); });
}

Result<CoordinatorFact> decode_coordinator_fact(Decoder& in) {
  return decode_coordinator_fact(read_frame(in));
}

Result<CoordinatorFact> decode_coordinator_fact_1(Decoder& in) {
  const std::uint8_t tag = in.u8();
  const std::uint8_t version = in.u8();
  CoordinatorFact fact;
  if (version != kVersion1 || !read_tagged(tag, fact, [&](auto& one) { read(in, one); }) ||
      !in.ok()) {
    return Error{Errc::malformed, "a fact of the groups, format 1"};
  }
  return fact;
}

}  // namespace baton
