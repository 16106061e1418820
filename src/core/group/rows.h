#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/rows.h"
#include "core/group/state.h"
#include "core/group/types.h"

/// The rows of the checkpoint that belong to groups: one for each.
///
///   key    stream length u16 big-endian, stream, partition u64 big-endian, group name (the rest)
///   value  version u8 (1), kind u8 (facts.h), partition index + 1 varint, generation varint,
///          generation_at i64, has offset u8; then, if it has one: offset varint, offset_at i64;
///          fields (base/growing.h)
namespace baton {

namespace tables {
inline constexpr Table kGroups{11};

inline constexpr std::array<TableName, 1> kCoordinator{{{kGroups, "groups"}}};
}  // namespace tables

std::string group_row_key(const GroupId& group);
/// Fails with store_corrupt.
Result<GroupId> decode_group_row_key(std::string_view key);

std::string encode_row(const coordinator_state::Record& record);
/// Fails with store_corrupt.
Result<coordinator_state::Record> decode_group_row(std::string_view value);

}  // namespace baton
