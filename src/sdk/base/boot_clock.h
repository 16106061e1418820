#pragma once

#include <ctime>

#include "base/time.h"

namespace baton::client {

/// Time since the machine started. It goes on while the process is stopped and while the machine
/// sleeps: a lease must not last longer because the process did not run.
inline Instant boot_now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

}  // namespace baton::client
