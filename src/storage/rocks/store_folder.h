#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace baton {

/// Creates `folder` and its missing parents, durably. Fails if the name is taken by something else.
Status make_store_folder(const std::string& folder);

/// Whether `folder` holds a RocksDB store. Fails with store_corrupt when there are table files but
/// no CURRENT file that describes them: RocksDB would create a new store and delete them.
Result<bool> store_folder_is_used(const std::string& folder);

/// How much room RocksDB takes in `folder` while it opens. That is a list of the tables, no longer
/// than the list that is there, and its options and its log (180 kB for ten tables), rounded up.
std::uint64_t opening_bytes(const std::string& folder);

/// Fails with folder_in_use when another process has the store in `folder` open. Releases the lock
/// if it is this process that holds it: that is how POSIX locks work.
Status check_store_folder_unlocked(const std::string& folder);

}  // namespace baton
