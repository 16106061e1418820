#pragma once

#include <cstddef>
#include <string>

namespace baton {

/// How many files and folders others could look into, and how many of them still can, because they
/// belong to another user.
struct Tightened {
  std::size_t changed = 0;
  std::size_t failed = 0;
};

/// Takes every right of group and others from the folder and all in it. Follows no link.
Tightened make_owner_only(const std::string& folder);

}  // namespace baton
