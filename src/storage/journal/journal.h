#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <baton/strong.h>

#include "base/result.h"
#include "base/time.h"
#include "storage/disk/disk.h"

namespace baton {

/// The number of a round in a shard's journal: 1, 2, 3 and so on, without gaps.
using Position = Strong<struct PositionTag>;

/// One entry of the journal: all facts of one round of a shard.
struct Round {
  Position position;
  Instant now;
  std::string_view facts;  // Valid during the visit only.
};

/// The truth of one shard: rounds of facts, in order, append only. Deliberately narrow (append at
/// an expected position, sync, read from a position, trim), so that a replicated log can take its
/// place.
///
/// Threads: append() belongs to the shard; sync(), prepare() and trim() may each run at the same
/// time from another thread.
class Journal {
 public:
  /// Bytes of facts that can still be appended without asking the file system for room. A round of
  /// at most `additions` (or `everything`) bytes, and at most round_bytes_max(), is sure to fit; 0
  /// means that no round fits. Ask again before each round: a round that skips the rest of a
  /// segment takes more than its size.
  struct Room {
    std::uint64_t additions;   // For rounds that add data: leaves the reserve alone.
    std::uint64_t everything;  // Including the reserve kept for acks and deletes.
  };

  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  virtual ~Journal() = default;

  /// The maximum number of bytes of facts in one round.
  [[nodiscard]] virtual std::uint64_t round_bytes_max() const = 0;
  /// The oldest round there is; next() when there is none.
  [[nodiscard]] virtual Position first() const = 0;
  /// The position the next round gets.
  [[nodiscard]] virtual Position next() const = 0;
  /// Writes one round; durable only after sync(). Fails with position_taken unless `expected` is
  /// next(), with invalid_argument when `facts` is larger than round_bytes_max(), with journal_full
  /// when no room is prepared; in these cases nothing is written. Any other failure means that the
  /// disk's content is unknown, and the caller ends the process.
  virtual Status append(Position expected, Instant now, std::string_view facts) = 0;
  /// Makes every round appended before the call durable; answers the first position that is not.
  /// Fails with resource_exhausted when no more files can be opened; try again later. Any other
  /// failure means that the disk's content is unknown, and the caller ends the process.
  virtual Result<Position> sync() = 0;
  /// Prepares segments ahead of the appends; a journal just opened has none. Fails with disk_full
  /// when the disk has no room, with resource_exhausted when no more files can be opened; what is
  /// prepared already stays usable, and a later call may succeed.
  virtual Status prepare() = 0;
  [[nodiscard]] virtual Room room() const = 0;
  /// Visits every round from `from` on, in order, as it was when the journal was opened. Fails with
  /// round_not_found when `from` was trimmed away, or lies past the end. Not at the same time as
  /// trim().
  virtual Status read(Position from, const std::function<Status(const Round&)>& visit) const = 0;
  /// Drops rounds before `before`: only whole segments that are durable and have a durable
  /// successor, so that the journal always knows its next position.
  virtual Status trim(Position before) = 0;
  /// About the bytes that a recovery from `from` would read.
  [[nodiscard]] virtual std::uint64_t bytes_since(Position from) const = 0;
};

struct JournalOptions {
  // A multiple of 4096. Segments of another size, made under another setting, stay readable.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20U;
  // Trimmed segments kept for reuse; more are deleted.
  std::size_t spares_max = 8;
  // Free bytes of the disk that rounds which add data leave alone: the checkpoint, which makes room
  // again, needs some itself.
  std::uint64_t leave_free_bytes = 0;
};

/// Opens the journal in `folder`, or creates it; the parent must exist. A torn tail is cut; damage
/// before the durable end is refused with journal_corrupt, naming file and offset. Every round that
/// is there afterwards is durable. `disk` must outlive the journal.
Result<std::unique_ptr<Journal>> open_file_journal(Disk& disk, std::string folder,
                                                   JournalOptions options = {});

}  // namespace baton
