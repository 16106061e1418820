#include "cluster/loglet/entry.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hash.h"

namespace baton::loglet {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are little-endian");

constexpr std::uint32_t kMagic = 0x314c5442;  // "BTL1"
constexpr std::size_t kCrcAt = 4;
constexpr std::size_t kHashedFrom = 8;
constexpr std::uint32_t kLast = 1;
constexpr std::uint32_t kFence = 2;

}  // namespace

std::string encode_entry(const EntryHeader& header, std::string_view facts) {
  std::string bytes;
  bytes.reserve(kEntryHeaderBytes + facts.size());
  Encoder out(bytes);
  out.fixed(kMagic);
  out.fixed(std::uint32_t{0});
  out.fixed(header.boot);
  out.fixed(header.position);
  out.fixed(header.now.ns);
  out.fixed(header.prev);
  out.fixed(header.node);
  out.fixed(header.fragment);
  out.fixed((header.last ? kLast : 0U) | (header.fence ? kFence : 0U));
  out.fixed(header.generation);
  out.fixed(std::uint64_t{0});
  out.raw(facts);
  const std::uint32_t crc = crc32c(std::string_view(bytes).substr(kHashedFrom));
  std::memcpy(bytes.data() + kCrcAt, &crc, sizeof crc);
  return bytes;
}

Result<EntryView> decode_entry(std::string_view bytes) {
  Decoder in(bytes);
  const auto magic = in.fixed<std::uint32_t>();
  const auto crc = in.fixed<std::uint32_t>();
  EntryView entry;
  EntryHeader& header = entry.header;
  header.boot = in.fixed<std::uint64_t>();
  header.position = in.fixed<std::uint64_t>();
  header.now = Instant{in.fixed<std::int64_t>()};
  header.prev = in.fixed<std::uint64_t>();
  header.node = in.fixed<std::uint32_t>();
  header.fragment = in.fixed<std::uint32_t>();
  const auto flags = in.fixed<std::uint32_t>();
  header.generation = in.fixed<std::uint32_t>();
  const auto zero = in.fixed<std::uint64_t>();
  if (!in.ok()) {
    return Error{Errc::malformed, fmt::format("an entry of {} bytes; its header alone has {}",
                                              bytes.size(), kEntryHeaderBytes)};
  }
  if (magic != kMagic) return Error{Errc::malformed, "not an entry of a shard's log"};
  const std::string_view hashed = bytes.substr(kHashedFrom);
  if (crc32c(hashed) != crc) return Error{Errc::malformed, "an entry whose checksum does not fit"};
  if (flags > (kLast | kFence) || zero != 0) {
    return Error{Errc::store_too_new, fmt::format("an entry with the flags {:#x}", flags)};
  }
  header.last = (flags & kLast) != 0;
  header.fence = (flags & kFence) != 0;
  entry.chain = hash64(hashed);
  entry.facts = in.rest();
  return entry;
}

}  // namespace baton::loglet
