#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"
#include "base/time.h"
#include "core/group/types.h"

/// What the journal holds of groups. Members are not truth: a restart removes them, and their
/// clients come back.
///
/// Each is framed and can gain fields as base/growing.h says; format 1 has kind u8 and version u8
/// (1) before the same bodies.
///
///   0 GroupCreated    group, kind u8, partition index + 1 varint
///   1 GenerationTaken group, generation varint, at i64
///   2 OffsetStored    group, epoch varint, offset varint, at i64
///   3 GroupForgotten  group
///   group             stream blob (1 to 200 bytes), partition varint (below 10 000), name blob
///                     (1 to 200 bytes)
///   kind              0 not single-active, 1 single-active, 2 single-active with strict hand-over
///   blob              length varint, bytes. Numbers are little-endian.
namespace baton {

/// The group exists, and is of this kind. Repeated when an empty group changes its kind.
struct GroupCreated {
  GroupId group;
  bool single_active = false;
  PartitionIndex partition_index = kSimple;
  Handover handover = Handover::at_once;
};
/// A hand-over has begun or ended: no effect may carry this generation again.
struct GenerationTaken {
  GroupId group;
  Generation generation;
  Instant at;
};
struct OffsetStored {
  GroupId group;
  Generation epoch;  // Of the seat that stored it; 0: set from outside.
  GroupOffset offset;
  Instant at;
};
/// The group was deleted by an operator or with its stream, or was empty with nothing to keep.
struct GroupForgotten {
  GroupId group;
};

using CoordinatorFact = std::variant<GroupCreated, GenerationTaken, OffsetStored, GroupForgotten>;

extern const FactSet kCoordinatorFacts;

void encode(Encoder& out, const CoordinatorFact& fact);
/// Fails with malformed, or store_too_new.
Result<CoordinatorFact> decode_coordinator_fact(const FactFrame& frame);
Result<CoordinatorFact> decode_coordinator_fact(Decoder& in);
/// Reads one fact of format 1; fails with malformed.
Result<CoordinatorFact> decode_coordinator_fact_1(Decoder& in);

/// A group's name as facts and rows hold it, checked against its limits; a bad one fails the
/// decoder.
void encode(Encoder& out, const GroupId& group);
GroupId decode_group_id(Decoder& in);
/// A partition index as facts and rows hold it.
void encode(Encoder& out, PartitionIndex index);
PartitionIndex decode_partition_index(Decoder& in);
/// A flag: a byte other than 0 and 1 fails the decoder.
bool decode_flag(Decoder& in);
/// A group's kind, one byte.
void encode_kind(Encoder& out, bool single_active, Handover handover);
void decode_kind(Decoder& in, bool& single_active, Handover& handover);

}  // namespace baton
