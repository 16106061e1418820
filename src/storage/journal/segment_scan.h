#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "storage/journal/journal_format.h"

namespace baton {

/// Walks the rounds in the bytes of one whole segment file. Stops for good at the first round that
/// is not valid. Not thread-safe.
class SegmentReader {
 public:
  /// A round that passed every check.
  struct Found {
    Round round;
    Position durable;
    std::uint64_t offset;
  };

  /// `bytes` must outlive the reader and everything it answers.
  SegmentReader(std::string_view bytes, const SegmentHeader& header);

  /// The next round; nullopt when what follows is not a valid round of the next position.
  std::optional<Found> next();
  /// Where the next round would begin.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  /// The position that the next round would have.
  [[nodiscard]] Position position() const { return position_; }

 private:
  std::string_view bytes_;
  SegmentId id_;
  Position position_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
};

/// What the headers beyond a bad round say.
struct LaterRounds {
  Position durable{0};    // The furthest claim: every position before it was durable.
  std::uint64_t end = 0;  // Where the last round found ends; 0 when there is none.
};

/// Where to search for rounds that should not be there.
struct SearchFrom {
  std::uint64_t offset;
  Position position;  // Only rounds at or after it count.
};

/// Searches the bytes of a whole segment file, from a bad round on. A header whose CRC holds was
/// written by us in this life, so its claim counts even if its own facts are torn.
LaterRounds search_later_rounds(std::string_view bytes, SegmentId segment, SearchFrom from);

}  // namespace baton
