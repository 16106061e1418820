// Preloaded into a process (LD_PRELOAD), makes its CLOCK_BOOTTIME run at the rate that CLOCK_RATE
// names ("1.01"): the clock of a machine whose crystal is wrong.
#include <dlfcn.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>

namespace {

using GetTime = int (*)(clockid_t, timespec*);
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now(GetTime get_time) {
  timespec time{};
  get_time(CLOCK_BOOTTIME, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

struct Clock {
  GetTime get_time = reinterpret_cast<GetTime>(dlsym(RTLD_NEXT, "clock_gettime"));
  double rate = std::getenv("CLOCK_RATE") != nullptr ? std::atof(std::getenv("CLOCK_RATE")) : 1;
  std::int64_t start = now(get_time);
};

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
  static const Clock clock;
  if (id != CLOCK_BOOTTIME) return clock.get_time(id, time);
  const auto passed = static_cast<double>(now(clock.get_time) - clock.start) * clock.rate;
  const std::int64_t shown = clock.start + static_cast<std::int64_t>(passed);
  time->tv_sec = shown / kSecond;
  time->tv_nsec = shown % kSecond;
  return 0;
}
