#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/base/command.h"
#include "cli/base/output.h"
#include "cli/broker/stream_parse.h"
#include "cli/broker/with_broker.h"  // IWYU pragma: export

/// What the verbs of `baton stream` and `baton group` share.
namespace baton::cli {

template <>
inline constexpr std::string_view kValueName<client::StartFrom> = "PLACE";
template <>
inline constexpr std::string_view kValueName<client::RecordCompression> = "CODEC";
template <>
inline constexpr std::string_view kValueName<Retention> = "AGE|SIZE";
template <>
inline constexpr std::string_view kValueName<client::Handover> = "HOW";

struct StreamFlags : ClientFlags {
  std::string stream;
};

/// The stream's name as the first argument, and the flags of every client.
void add_stream_argument(CLI::App& command, StreamFlags& flags);

/// "stream read events": the subject of an error.
std::string about_stream(std::string_view verb, std::string_view stream);

// Readers of flag values.
Result<PartitionNumber> read_partition(std::string_view text);
Result<client::StartFrom> read_from(std::string_view text);

/// Fails, naming the flag, if the stream has no such partition.
Status check_partition(const client::StreamInfo& stream, PartitionNumber partition);

}  // namespace baton::cli
