#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace baton {

/// How a data folder divides its disk. On a disk of at least 768 MiB, and 512 MiB for each shard,
/// these are the sizes that suit a large one; on a smaller one everything shrinks with it.
struct DiskShare {
  /// Of the journal. A shard has three from its start: the one being written, one for additions,
  /// and one that only acks and deletes may use.
  std::uint64_t segment_bytes;
  /// What additions leave free of the disk: the checkpoint, which makes room again, needs some.
  std::uint64_t leave_free_bytes;
  /// What the rows of a checkpoint leave free of that, for the store's own records.
  std::uint64_t store_reserve_bytes;
  /// How much journal makes a checkpoint due, so that segments come back before they are needed.
  std::uint64_t checkpoint_journal_bytes;
};

DiskShare share_of_disk(std::uint64_t disk_bytes, std::size_t shards);
/// Of the disk with the folder `data`, which is there.
DiskShare share_of_disk(const std::string& data, std::size_t shards);

}  // namespace baton
