#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

/// How the records of a batch are compressed. The numbers are those of Kafka's attributes.
enum class Compression : std::uint8_t { none = 0, gzip = 1, snappy = 2, lz4 = 3, zstd = 4 };

/// "zstd"; "unknown" for a number that is none of them.
std::string_view compression_name(Compression compression);
/// Reads a name; fails with invalid_argument, naming the known ones.
Result<Compression> parse_compression(std::string_view name);

/// Appends `bytes`, compressed, to `out`: gzip in one member, snappy in snappy-java's frame, lz4 in
/// one frame of independent blocks, zstd in one frame, so that every Kafka client reads it.
Status compress(Compression compression, std::string_view bytes, std::string& out);

/// The opposite. Snappy may be framed or raw. Fails with malformed when `bytes` is damaged or
/// incomplete, and with resource_exhausted when there would be more than `bytes_max` of output;
/// never more than about that much memory is taken, whatever the input claims.
Result<std::string> decompress(Compression compression, std::string_view bytes,
                               std::size_t bytes_max);

}  // namespace baton
