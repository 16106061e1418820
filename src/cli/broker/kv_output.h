#pragma once

#include <string>
#include <vector>

#include <baton/kv.h>

#include "cli/base/output.h"

/// Output of buckets, keys and watches, for programs and for people.
namespace baton::cli {

// Objects with the field names of the wire schema.

Json to_json(const client::BucketInfo& bucket);
Json to_json(const client::KvEntry& entry);
/// The outcome of a put, or of a removal (`removal`).
Json to_json(const client::KvOutcome& outcome, bool removal);
/// "event" comes first: put, removed, expired, snapshot_end, compacted, session_lost, disconnected.
Json to_json(const client::KvWatchEvent& event);

// Text for people.

std::string describe(const client::BucketInfo& bucket);
/// A value as a terminal may show it: text with its line ends; for other bytes only their number.
std::string terminal_text(std::string_view value);
std::string list_text(const std::vector<client::BucketInfo>& buckets);
std::string list_text(const std::vector<client::KvEntry>& entries);
std::string describe(const client::KvWatchEvent& event);

}  // namespace baton::cli
