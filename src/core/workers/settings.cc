#include "core/workers/settings.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "core/workers/names.h"

namespace baton::partition {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Status check_timing(const Timing& timing) {
  constexpr Duration kLeaseLeast = milliseconds(300);
  if (timing.lease < kLeaseLeast || timing.lease > kTimingMax) {
    return invalid_argument(fmt::format("lease-ttl {} must be {} to {}",
                                        format_duration(timing.lease), format_duration(kLeaseLeast),
                                        format_duration(kTimingMax)));
  }
  if (timing.heartbeat <= Duration::zero() || timing.heartbeat > timing.lease * 2 / 5) {
    return invalid_argument(fmt::format(
        "heartbeat {} must be above 0 and at most two fifths of the lease-ttl {}: one lost renewal "
        "must not cost the lease",
        format_duration(timing.heartbeat), format_duration(timing.lease)));
  }
  const std::array<std::pair<std::string_view, Duration>, 4> others = {
      {{"resync", timing.resync},
       {"drain", timing.drain},
       {"static-grace", timing.static_grace},
       {"reclaim-grace", timing.reclaim_grace}}};
  for (const auto& [name, value] : others) {
    if (value < Duration::zero() || value > kTimingMax) {
      return invalid_argument(fmt::format("{} {} must be 0 to {}", name, format_duration(value),
                                          format_duration(kTimingMax)));
    }
  }
  return timing.resync > Duration::zero() ? Status() : invalid_argument("resync must be above 0");
}

}  // namespace

Timing timing_of(Profile profile, bool slow_failover) {
  switch (profile) {
    case Profile::reference:
      return {.lease = seconds(5),
              .heartbeat = seconds(2),
              .resync = seconds(3),
              .drain = seconds(1),
              .static_grace = seconds(0),
              .reclaim_grace = seconds(1)};
    case Profile::fast:
      return {.lease = milliseconds(1500),
              .heartbeat = milliseconds(400),
              .resync = seconds(1),
              .drain = seconds(2),
              .static_grace = seconds(5)};
    case Profile::standard: break;
  }
  Timing timing;
  if (slow_failover) timing.lease = seconds(10);
  timing.heartbeat = timing.lease / 4;
  return timing;
}

Result<Profile> parse_profile(std::string_view name) {
  if (name == "default") return Profile::standard;
  if (name == "reference") return Profile::reference;
  if (name == "fast") return Profile::fast;
  return invalid_argument(
      fmt::format("profile \"{}\" is unknown; there are default, reference and fast", name));
}

Status check(const Settings& settings) {
  BATON_TRY_STATUS(check_name("group", settings.group));
  BATON_TRY_STATUS(check_name("id", settings.worker));
  if (settings.partitions == 0 || settings.partitions > kPartitionsMax) {
    return invalid_argument(
        fmt::format("partitions {} must be 1 to {}", settings.partitions, kPartitionsMax));
  }
  if (settings.weight == 0 || settings.weight > kWeightMax) {
    return invalid_argument(fmt::format("weight {} must be 1 to {}", settings.weight, kWeightMax));
  }
  return check_timing(settings.timing);
}

}  // namespace baton::partition
