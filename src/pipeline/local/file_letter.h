#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/stored_letter.h"

namespace baton::pipeline {

/// Converts a dead letter to a line of JSON, and back:
///
///   {"headers": {...}, "id": ..., "key": base64, "value": base64}
///
/// "headers" has the record's headers and the letter's. If the record's headers do not fit there
/// (names that repeat or are the letter's, bytes that are not UTF-8), all of them are in
///
///   "record_headers": [[base64 name, base64 value], ...]
std::string to_json_line(const DeadLetter& letter);
/// Fails with malformed.
Result<StoredLetter> from_json_line(std::string_view line);

}  // namespace baton::pipeline
