#include "server/shard/clock.h"

#include <ctime>

namespace baton {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

BrokerClock::BrokerClock(Instant start) : start_(start), boottime_ns_(read_clock(CLOCK_BOOTTIME)) {}

Instant BrokerClock::now() const {
  return start_ + Duration{read_clock(CLOCK_BOOTTIME) - boottime_ns_};
}

Instant BrokerClock::wall() { return {read_clock(CLOCK_REALTIME)}; }

}  // namespace baton
