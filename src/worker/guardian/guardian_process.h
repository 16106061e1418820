#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"
#include "worker/guardian/guardian.h"
#include "worker/guardian/line_channel.h"

namespace baton::worker {

/// A guardian, from its runner's side: this very program, started again as `baton worker-guard`, in
/// its own process group, so that signals that stop or interrupt us do not reach it.
class GuardianProcess {
 public:
  /// Call as early as possible: the guardian inherits what this process has open.
  static Result<std::unique_ptr<GuardianProcess>> start(const GuardianOptions& options);
  GuardianProcess(const GuardianProcess&) = delete;
  GuardianProcess& operator=(const GuardianProcess&) = delete;
  /// Closes the channel, which ends every handler, and waits for their end.
  ~GuardianProcess();

  LineChannel& channel() { return *channel_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  GuardianProcess(pid_t pid, int channel)
      : pid_(pid), channel_(std::make_unique<LineChannel>(channel)) {}

  pid_t pid_;
  std::unique_ptr<LineChannel> channel_;
};

/// The arguments of `baton worker-guard`, for the command line's parser.
std::vector<std::string> guardian_arguments(const GuardianOptions& options);

}  // namespace baton::worker
