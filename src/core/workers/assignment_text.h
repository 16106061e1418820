#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/workers/documents.h"

/// How an assignment is written, and the short way to read what was written so. Every worker reads
/// each change of the assignment, 1 024 partitions at a time.
///
///   {"first":0,"holdings":[[owner,epoch,next,since_ms,why],...],"partitions":4,
///    "sessions":["w1.5f2c",...],"version":1}
///
/// on one line, without spaces. Owner and next are places in `sessions`, or -1: nobody.
namespace baton::partition {

std::string write_assignment(const Assignment& assignment);

/// None: it is not written exactly so, or says something that it must not. Then only a reader of
/// JSON can tell what it is.
std::optional<Assignment> read_as_written(std::string_view text);

/// The chunk holds the partitions that it says.
bool is_whole(const Assignment& assignment);

}  // namespace baton::partition
