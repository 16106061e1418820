#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/loglet/acceptor.h"
#include "storage/disk/disk.h"

namespace baton::cluster {

/// A place in a shard's log, and how many bytes of the log lie before it. The mark in a node's
/// folder is never ahead of the node's checkpoint: recovery begins there, and a log that lacks that
/// place, or has something else there, is not the log that the node has applied.
struct LogMark {
  loglet::Place place;
  std::uint64_t bytes = 0;

  friend bool operator==(const LogMark&, const LogMark&) = default;
};

/// Writes the mark, durably: the file is complete or is the one before.
Status write_log_mark(Disk& disk, const std::string& path, const LogMark& mark);
/// nullopt if there is no file. A damaged one is an error.
Result<std::optional<LogMark>> read_log_mark(Disk& disk, const std::string& path);

}  // namespace baton::cluster
