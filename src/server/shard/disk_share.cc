#include "server/shard/disk_share.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/limits.h"

namespace baton {
namespace {

constexpr std::uint64_t kSegmentStep = 4096;
// The largest message, the deadlines of its round, and a margin.
constexpr std::uint64_t kSegmentMin = limits::kPayloadBytesMax + 8 * limits::kMiB;
constexpr std::uint64_t kSegmentMax = 64 * limits::kMiB;
constexpr std::uint64_t kLeaveFreeMin = 12 * limits::kMiB;
constexpr std::uint64_t kLeaveFreeMax = 192 * limits::kMiB;

}  // namespace

DiskShare share_of_disk(std::uint64_t disk_bytes, std::size_t shards) {
  const std::uint64_t eighth = disk_bytes / shards / 8;
  const std::uint64_t leave_free = std::clamp(disk_bytes / 4, kLeaveFreeMin, kLeaveFreeMax);
  return {
      .segment_bytes = std::clamp(eighth, kSegmentMin, kSegmentMax) / kSegmentStep * kSegmentStep,
      .leave_free_bytes = leave_free,
      // Compactions leave twice as much free.
      .store_reserve_bytes = leave_free / 3,
      .checkpoint_journal_bytes = std::clamp(eighth, kSegmentMin, limits::kCheckpointJournalBytes)};
}

DiskShare share_of_disk(const std::string& data, std::size_t shards) {
  std::error_code unknown;
  const auto space = std::filesystem::space(data, unknown);
  return share_of_disk(unknown ? ~std::uint64_t{0} : std::uint64_t{space.capacity}, shards);
}

}  // namespace baton
