#pragma once

#include <string>

#include "base/result.h"

namespace baton {

/// Makes `folder` and what is missing above it, durably. Fails if something else has that name.
Status make_store_folder(const std::string& folder);

/// Whether `folder` holds a RocksDB store. Fails with store_corrupt when there are table files and
/// no CURRENT file to say what they are: RocksDB would start anew and delete them.
Result<bool> store_folder_is_used(const std::string& folder);

/// Fails with folder_in_use when another process has the store in `folder` open. Releases the lock
/// if it is this process that holds it: that is how POSIX locks work.
Status check_store_folder_unlocked(const std::string& folder);

}  // namespace baton
