#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

/// The entries of a log that several nodes share. A round of facts is one entry, or several
/// fragments of it. Each entry names the hash of the entry that it extends, so that a reader can
/// tell the owner's entries from those of a former owner that came late.
namespace baton::loglet {

/// The hash of an entry, by which the next one names it. That of the empty log is 0.
using Chain = std::uint64_t;

/// The bytes before the facts.
inline constexpr std::size_t kEntryHeaderBytes = 64;
/// An entry has at most this many bytes, header included: larger entries are not faster.
inline constexpr std::size_t kEntryBytesMax = std::size_t{1} << 20U;

struct EntryHeader {
  std::uint64_t boot = 0;      // The epoch of the owner that wrote the entry.
  std::uint64_t position = 0;  // Of the round.
  Instant now;
  Chain prev = 0;  // The chain of the entry that this one extends.
  std::uint32_t node = 0;
  std::uint32_t fragment = 0;    // 0, 1, 2 and so on within the round.
  bool last = true;              // Of its round.
  bool fence = false;            // Begins a boot.
  std::uint32_t generation = 0;  // Of the log.

  friend bool operator==(const EntryHeader&, const EntryHeader&) = default;
};

struct EntryView {
  EntryHeader header;
  Chain chain = 0;         // Of this entry.
  std::string_view facts;  // Of the bytes that were decoded.
};

/// An entry as the log has it. Sequences are 1, 2, 3 and so on, strays included.
struct StoredEntry {
  std::uint64_t sequence = 0;
  std::string bytes;

  friend bool operator==(const StoredEntry&, const StoredEntry&) = default;
};

std::string encode_entry(const EntryHeader& header, std::string_view facts);
/// Fails with malformed when a byte is not what was written, with store_too_new when the entry has
/// a form or flags that this version does not know.
Result<EntryView> decode_entry(std::string_view bytes);

}  // namespace baton::loglet
