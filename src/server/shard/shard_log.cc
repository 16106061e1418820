#include "server/shard/shard_log.h"

#include <utility>

#include <fmt/format.h>

namespace baton {

Result<PartitionFolders> PartitionFolders::open(Disk& disk, std::string folder) {
  BATON_TRY_STATUS(disk.make_folder(folder));
  return PartitionFolders(disk, std::move(folder));
}

std::string PartitionFolders::folder_of(const PartitionName& name) const {
  return fmt::format("{}/{}-{}", folder_, name.stream.value, name.partition.value);
}

Result<std::unique_ptr<PartitionLog>> PartitionFolders::open_partition(
    const PartitionName& name, const PartitionLog::Opening& opening) const {
  return PartitionLog::open(*disk_, folder_of(name), opening);
}

Result<bool> PartitionFolders::has_partition(const PartitionName& name) const {
  BATON_TRY(const auto files, disk_->list(folder_of(name)));
  return !files.empty();
}

Status PartitionFolders::remove_partition(const PartitionName& name) const {
  return baton::remove_partition(*disk_, folder_of(name));
}

Result<std::unique_ptr<ShardLog>> open_local_log(Disk& disk, std::string journal,
                                                 std::string partitions, JournalOptions options) {
  BATON_TRY(auto rounds, open_file_journal(disk, std::move(journal), options));
  BATON_TRY(PartitionFolders folders, PartitionFolders::open(disk, std::move(partitions)));
  return std::unique_ptr<ShardLog>(
      std::make_unique<LocalLog>(std::move(rounds), std::move(folders)));
}

}  // namespace baton
