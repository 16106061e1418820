#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace baton {

/// How a data folder divides its disk. On a disk with at least 768 MiB, and 512 MiB for each shard,
/// these are the full sizes; on a smaller disk all of them shrink.
struct DiskShare {
  /// The size of a journal segment. A shard has three from its start: the one being written, one
  /// for additions, and one that only acks and deletes may use.
  std::uint64_t segment_bytes;
  /// How much of the disk additions leave free: the checkpoint, which makes room again, needs some.
  std::uint64_t leave_free_bytes;
  /// How much of that the rows of a checkpoint leave free, for the store's own records.
  std::uint64_t store_reserve_bytes;
  /// The size of the journal that makes a checkpoint due, so that segments are reusable before they
  /// are needed.
  std::uint64_t checkpoint_journal_bytes;
};

DiskShare share_of_disk(std::uint64_t disk_bytes, std::size_t shards);
/// The share of the disk that holds the existing folder `data`.
DiskShare share_of_disk(const std::string& data, std::size_t shards);

}  // namespace baton
