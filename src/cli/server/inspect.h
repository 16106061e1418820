#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "cli/base/output.h"
#include "server/shard/broker.h"
#include "storage/disk/disk.h"
#include "storage/journal/journal.h"

/// The part of `baton store inspect` that reads the files of a data folder.
namespace baton::cli {

/// Where a journal begins and ends, and how much of it a recovery would read.
struct JournalExtent {
  Position first{1};
  Position next{1};
  std::uint64_t bytes = 0;  // Of the rounds from the checkpoint on.
};

/// Reads the segments in `folder` without changing a byte, unlike the broker, which cuts a torn
/// tail. Rounds before `checkpoint` are in the checkpoint. A hole between segments is refused with
/// journal_corrupt, naming the file.
Result<JournalExtent> inspect_journal(Disk& disk, const std::string& folder, Position checkpoint);

/// Inspects every shard of a stopped broker's folder. Fails with folder_in_use while a broker runs
/// on it, and prevents one from starting meanwhile.
Result<std::vector<ShardInspection>> inspect_folder(const std::string& path);

Json to_json(const std::vector<ShardInspection>& shards);
std::string describe(const std::vector<ShardInspection>& shards);

}  // namespace baton::cli
