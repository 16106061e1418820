#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "core/stream/types.h"

namespace baton {

class LogSegment;
struct SharedLog;

/// Whole batches, as stored.
struct ReadBatches {
  std::string bytes;
  Offset first;  // Of the first record in `bytes`: at or before the one asked for.
  Offset next;   // After the last record in `bytes`: where to continue.
};

/// Reads one partition: every published batch, and no other. Shares no lock with the writer, and
/// may outlive it. A reader is used by one thread at a time; there may be any number of readers,
/// and a copy is another reader.
///
/// Between two calls it holds the segment it read last, so that retention does not remove what is
/// being read; a caller that stops reading for long calls release().
class PartitionReader {
 public:
  explicit PartitionReader(std::shared_ptr<const SharedLog> log);
  PartitionReader(const PartitionReader& other);
  PartitionReader& operator=(const PartitionReader& other) = delete;
  PartitionReader(PartitionReader&&) noexcept;
  PartitionReader& operator=(PartitionReader&&) noexcept;
  ~PartitionReader();

  /// The oldest offset that is retained; next() when there is no record.
  [[nodiscard]] Offset first() const;
  /// The offset after the last published record.
  [[nodiscard]] Offset next() const;

  /// Batches from the one that contains `from` on: as many as fit into `bytes_max`, at least one,
  /// none at all when `from` is next(). May stop early (at the end of a segment); `next` says where
  /// to go on. Fails with offset_out_of_range when `from` is below first() or above next(), naming
  /// both; with malformed when the files are damaged there, naming file and position. The checksum
  /// of every batch is verified first.
  Result<ReadBatches> read(Offset from, std::size_t bytes_max);

  /// The offset of the first record with at least this timestamp; next() when there is none.
  Result<Offset> offset_for_time(TimestampMs at) const;

  /// Releases the segment that was read last.
  void release();

 private:
  struct Place;

  Result<std::shared_ptr<const LogSegment>> take_segment(Offset from, Offset end) const;
  Result<ReadBatches> read_segment(Offset from, Offset limit, std::size_t bytes_max);
  [[nodiscard]] Result<Offset> find_time(TimestampMs at) const;
  /// Remembers that a reader met `error`, if it is damage.
  void note(const Error& error) const;

  std::shared_ptr<const SharedLog> log_;
  // Where the last read ended: the next one mostly begins there, and then needs no index.
  std::unique_ptr<Place> place_;
};

}  // namespace baton
