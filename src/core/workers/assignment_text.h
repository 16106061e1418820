#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/workers/documents.h"

/// The canonical text of an assignment, and a fast reader for it. Every worker reads each change of
/// the assignment, 1 024 partitions at a time.
///
///   {"first":0,"holdings":[[owner,epoch,next,since_ms,why],...],"partitions":4,
///    "sessions":["w1.5f2c",...],"version":1}
///
/// on one line, without spaces. Owner and next are indexes into `sessions`, or -1: nobody.
namespace baton::partition {

/// An index into `sessions` that names no session.
inline constexpr std::int64_t kNobody = -1;

std::string write_assignment(const Assignment& assignment);

/// nullopt if `text` is not in canonical form or violates an invariant; fall back to the JSON
/// reader then.
std::optional<Assignment> read_as_written(std::string_view text);

/// Whether the chunk holds exactly the partitions that it should.
bool is_whole(const Assignment& assignment);

}  // namespace baton::partition
