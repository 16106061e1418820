#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

/// Which shard of which data folder a folder is. Each shard's folder, and each of the three in it,
/// holds a file `SHARD` that says so:
///
/// ```
///   baton-shard 1
///   folder 5f0c...    the data folder's id, as FORMAT has it
///   shard 0
/// ```
namespace baton {

/// A new id of a data folder: 32 random hexadecimal digits.
std::string draw_folder_id();

/// Creates the folders of shard `number` of the data folder at `path`, and marks them.
Status mark_shard(const std::string& path, const std::string& folder_id, std::size_t number);

/// Fails with store_corrupt, naming the folder, if one of them belongs to another shard or another
/// data folder, or has lost its mark.
Status check_shard_marks(const std::string& path, const std::string& folder_id, std::size_t number);

/// The name of the file.
inline constexpr const char* kShardMark = "SHARD";

/// Writes the file under another name, syncs it, and renames it: the file is complete or does not
/// exist.
Status write_small_file(const std::string& folder, const std::string& name,
                        const std::string& text);

/// Creates a folder that only its owner can access; succeeds if it exists.
Status make_private_folder(const std::string& path);

}  // namespace baton
