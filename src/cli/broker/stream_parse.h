#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <baton/stream.h>

#include "base/result.h"
#include "cli/base/parse.h"

/// Values of streams as people write them. Pure; every error says what would be right.
namespace baton::cli {

/// One of the two, or with "0" both: no limit at all.
struct Retention {
  std::optional<Milliseconds> age{};
  std::optional<std::uint64_t> bytes{};
};

/// "7d" or "100GB"; "0" for no limit.
Result<Retention> parse_retention(std::string_view text);
/// "always", "interval:MS" or "never", as it was written.
Result<std::string> parse_fsync(std::string_view text);
/// "first", "last", "next", an offset, a time ("2026-01-31T08:30:00Z") or an age ("15m").
Result<client::StartFrom> parse_from(std::string_view text, client::RecordTime now);
/// "2026-01-31T08:30:00Z", with or without a fraction of a second.
Result<client::RecordTime> parse_time(std::string_view text);
/// "none", "gzip", "snappy", "lz4" or "zstd".
Result<client::RecordCompression> parse_record_compression(std::string_view text);

}  // namespace baton::cli
