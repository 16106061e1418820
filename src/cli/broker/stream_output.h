#pragma once

#include <optional>
#include <string>
#include <vector>

#include <baton/stream.h>

#include "cli/base/output.h"

/// Output of streams, records and groups, for programs and for people.
namespace baton::cli {

// Objects with the field names of the wire schema.

Json to_json(const client::StreamInfo& stream);
Json to_json(const client::AppendResult& result);
Json to_json(const client::Record& record);
Json to_json(const client::GroupInfo& group);

/// How many records the stream has, in all partitions.
std::uint64_t records_of(const client::StreamInfo& stream);

// Text for people.

std::string describe(const client::StreamInfo& stream);
std::string describe(const client::Record& record);
std::string list_text(const std::vector<client::StreamInfo>& streams);
/// A line per group and partition.
std::string list_text(const std::vector<client::GroupInfo>& groups);
/// One group: its seats, then all its consumers.
std::string describe(const std::vector<client::GroupInfo>& partitions);

/// "2026-01-31T08:30:00.000Z"; "-" if there is no time.
std::string format_time(client::BrokerTime time);
/// "1.5 ms"; "-" if there is no time.
std::string format_hand_over(std::chrono::microseconds time);

/// "none" for a group that has stored no offset.
std::string offset_text(const std::optional<Offset>& offset);

}  // namespace baton::cli
