#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "storage/disk/disk.h"
#include "storage/journal/journal_format.h"

namespace baton {

/// One live segment file: its open handle and what is in it. A plain record; its owners guard
/// everything that changes.
struct Segment {
  /// Where a round begins, kept once per a fixed number of bytes of the segment.
  struct Mark {
    Position position;
    std::uint64_t offset;
  };

  std::string name;
  std::unique_ptr<File> file;
  SegmentHeader header;
  Position end;        // The position after the last round.
  std::uint64_t used;  // Where the next round begins.
  // Its header and its name in the folder are durable, so the segments before it are not needed to
  // know the journal's next position.
  bool established = false;
  std::vector<Mark> marks;

  /// Counts a round of `bytes` at the end.
  void add_round(std::uint64_t bytes) {
    static constexpr std::uint64_t kMarkBytes = std::uint64_t{64} << 10U;
    if (marks.empty() || used - marks.back().offset >= kMarkBytes) marks.push_back({end, used});
    ++end.value;
    used += bytes;
  }
  /// The bytes from the round at `from`, or a little before it, to the end.
  [[nodiscard]] std::uint64_t bytes_since(Position from) const {
    if (from >= end) return 0;
    const auto after = std::ranges::upper_bound(marks, from, {}, &Mark::position);
    return used - (after == marks.begin() ? kSegmentHeaderBytes : std::prev(after)->offset);
  }
  [[nodiscard]] std::uint64_t bytes_free() const { return header.bytes - used; }
};

}  // namespace baton
