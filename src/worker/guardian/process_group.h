#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

namespace baton::worker {

/// What /proc/PID/stat says of a process.
struct ProcessState {
  pid_t group = 0;
  bool dead = false;  // A zombie: it does nothing, and waits for its parent.
};
std::optional<ProcessState> parse_process_state(std::string_view stat);

/// The processes of a group that are visible in /proc.
struct GroupMembers {
  std::vector<pid_t> alive{};
  bool has_dead = false;
};
GroupMembers members_of_group(pid_t group);

}  // namespace baton::worker
