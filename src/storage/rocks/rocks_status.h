#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace baton {

/// Our error for a failure RocksDB reports while `doing` something in `folder`. The text names the
/// folder, what RocksDB says (with the file, where it knows it) and what the operator can do.
Error rocks_error(const rocksdb::Status& status, std::string_view doing, const std::string& folder);

}  // namespace baton
