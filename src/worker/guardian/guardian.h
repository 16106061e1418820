#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace baton::worker {

struct GuardianOptions {
  std::string group;
  std::vector<std::string> command;
  bool fenced = false;
  Duration stop_margin = std::chrono::milliseconds(200);
  Duration notice{0};
  Duration drain = std::chrono::hours(24);
  int channel = 0;  // The socket to the runner.
};

/// The whole life of a guardian: the process that starts a runner's handlers, and that kills them
/// at the deadline, or when the runner is gone. It does not depend on the runner doing anything.
///
/// Needs a process of its own with one thread. Returns its exit code once no handler is left.
int run_guardian(const GuardianOptions& options);

}  // namespace baton::worker
