#include "server/shard/disk_share.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "server/shard/shard.h"

namespace baton {
namespace {

using limits::kMiB;

TEST(DiskShare, IsTheSameOnEveryLargeDisk) {
  for (const std::uint64_t disk : {4096 * kMiB, 1'000'000 * kMiB, ~std::uint64_t{0}}) {
    const DiskShare share = share_of_disk(disk, 1);
    EXPECT_EQ(share.segment_bytes, 64 * kMiB);
    EXPECT_EQ(share.leave_free_bytes, 192 * kMiB);
    EXPECT_EQ(share.store_reserve_bytes, 64 * kMiB);
    EXPECT_EQ(share.checkpoint_journal_bytes, limits::kCheckpointJournalBytes);
  }
}

// The journal's three segments and the free space leave room for a checkpoint.
TEST(DiskShare, ShrinksWithTheDisk) {
  for (std::uint64_t disk = 128 * kMiB; disk < 4096 * kMiB; disk += kMiB) {
    const DiskShare share = share_of_disk(disk, 1);
    EXPECT_LT(3 * share.segment_bytes + share.leave_free_bytes, disk) << disk / kMiB;
    EXPECT_EQ(share.segment_bytes % 4096, 0U);
    // A round has room for any message, and for the deadlines beside it.
    EXPECT_GT(share.segment_bytes, limits::kPayloadBytesMax + Shard::kSmallRoundBytes);
    EXPECT_LE(2 * share.store_reserve_bytes, share.leave_free_bytes);
  }
}

TEST(DiskShare, IsDividedAmongShards) {
  const DiskShare share = share_of_disk(1024 * kMiB, 4);
  EXPECT_EQ(share.segment_bytes, 32 * kMiB);
  EXPECT_EQ(share.leave_free_bytes, 192 * kMiB);
}

}  // namespace
}  // namespace baton
