#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/stream/producer_table.h"
#include "storage/log/log_segment.h"
#include "storage/log/partition_log.h"

namespace baton {

/// What a partition's folder holds once its torn tail is cut. All of it is durable.
struct OpenedLog {
  SegmentList segments;  // At least one; the last one is written to.
  std::vector<LogDamage> damages;
  ProducerTable producers;
  IndexBuilder builder;    // Of the last segment.
  std::uint64_t position;  // Where the next batch is written.
  Offset next;
};

/// Opens the folder, creates it if needed, cuts a torn tail, rebuilds what is missing, and makes
/// the rest durable. Crash-safe: when it is interrupted, the next call reaches the same result.
Result<OpenedLog> open_log_folder(Disk& disk, const std::string& folder,
                                  const PartitionLog::Opening& opening);

/// Makes an empty segment, whose name is durable afterwards.
Result<std::shared_ptr<File>> create_log_file(Disk& disk, const std::string& folder, Offset base);
/// Writes a file whose content, though not its name, is durable when this returns.
Status write_whole_file(Disk& disk, const std::string& path, std::string_view bytes);
/// Writes the two index files of a segment that is complete, and opens them for readers.
Result<std::shared_ptr<const FileIndex>> write_index_files(Disk& disk, const std::string& folder,
                                                           Offset base,
                                                           const IndexBuilder& builder);

}  // namespace baton
