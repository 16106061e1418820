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

/// A new id of a data folder: 32 hexadecimal digits that nobody else draws.
std::string draw_folder_id();

/// Makes the folders of shard `number` of the data folder at `path`, and marks them.
Status mark_shard(const std::string& path, const std::string& folder_id, std::size_t number);

/// Fails with store_corrupt, naming the folder, when one of them belongs to another shard or
/// another data folder, or has lost its mark.
Status check_shard_marks(const std::string& path, const std::string& folder_id, std::size_t number);

/// The name of the file.
inline constexpr const char* kShardMark = "SHARD";

/// Writes the file beside its place, syncs it, and moves it there: it is whole or not there.
Status write_small_file(const std::string& folder, const std::string& name,
                        const std::string& text);

/// Makes a folder that its owner alone can look into; one that exists is fine.
Status make_private_folder(const std::string& path);

}  // namespace baton
