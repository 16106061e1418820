#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::worker {

/// What a handler works on.
struct HandlerTask {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;

  bool operator==(const HandlerTask&) const = default;
};

/// The words of a command with {partition} and {epoch} replaced, wherever they stand. Other braces
/// stay as they are.
std::vector<std::string> expand_command(const std::vector<std::string>& words,
                                        const HandlerTask& task);

/// The environment of a handler: `inherited` ("NAME=value"), with BATON_GROUP, BATON_PARTITION and
/// BATON_EPOCH instead of what it had under these names.
std::vector<std::string> handler_environment(const std::vector<std::string>& inherited,
                                             std::string_view group, const HandlerTask& task);

}  // namespace baton::worker
