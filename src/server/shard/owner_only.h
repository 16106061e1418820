#pragma once

#include <cstddef>
#include <string>

namespace baton {

/// How many files and folders other users could access, and how many of them they still can,
/// because these belong to another user.
struct Tightened {
  std::size_t changed = 0;
  std::size_t failed = 0;
};

/// Removes all rights of group and others from the folder and everything in it. Does not follow
/// links.
Tightened make_owner_only(const std::string& folder);

}  // namespace baton
