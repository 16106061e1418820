#include "cli/worker/worker_timing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/address.h"

namespace baton::cli {
namespace {

constexpr double kSecondsMax = 86'400;

Result<Milliseconds> parse_seconds(const char* name, std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), seconds);
  // NaN compares false.
  const bool good =
      error == std::errc{} && end == text.end() && seconds >= 0 && seconds <= kSecondsMax;
  if (good) return Milliseconds{std::llround(seconds * 1000)};
  return Error{Errc::invalid_argument,
               fmt::format("the environment's {}='{}' is not a number of seconds from 0 to {:.0f}",
                           name, text.substr(0, 64), kSecondsMax)};
}

}  // namespace

Result<client::WorkerTiming> resolve_timing(const std::string& profile, const std::string& store,
                                            const WorkerTimes& flags,
                                            const Environment& environment) {
  const auto named = client::worker_timing(profile, store);
  if (!named.has_value()) return Error{Errc::invalid_argument, named.error().text};
  WorkerTimes wanted = flags;
  const std::array<std::pair<const char*, std::optional<Milliseconds>*>, 4> variables = {
      {{"LEASE_TTL_SEC", &wanted.lease},
       {"HEARTBEAT_SEC", &wanted.heartbeat},
       {"CLAIM_SEC", &wanted.resync},
       {"GRACE_SEC", &wanted.reclaim_grace}}};
  for (const auto& [name, value] : variables) {
    const std::optional<std::string> text = environment(name);
    if (!text.has_value() || text->empty() || value->has_value()) continue;
    BATON_TRY(*value, parse_seconds(name, *text));
  }
  client::WorkerTiming timing = *named;
  if (wanted.lease.has_value()) {
    timing.heartbeat = Milliseconds(std::llround(static_cast<double>(timing.heartbeat.count()) *
                                                 (std::chrono::duration<double>(*wanted.lease) /
                                                  std::chrono::duration<double>(timing.lease))));
    timing.heartbeat = std::max(timing.heartbeat, client::kWorkerIntervalMin);
    timing.lease = *wanted.lease;
  }
  timing.heartbeat = wanted.heartbeat.value_or(timing.heartbeat);
  const auto set = [](Milliseconds& field, const std::optional<Milliseconds>& value) {
    if (value.has_value()) field = *value;
  };
  set(timing.resync, wanted.resync);
  set(timing.drain, wanted.drain);
  set(timing.static_grace, wanted.static_grace);
  set(timing.reclaim_grace, wanted.reclaim_grace);
  return timing;
}

std::string default_store(const Environment& environment) {
  if (auto store = environment("BATON_STORE"); store.has_value() && !store->empty()) return *store;
  std::string address = environment("BATON_ADDRESS").value_or("");
  if (address.empty()) address = "127.0.0.1:7470";
  if (!split_scheme(address).scheme.empty()) return address;
  secure::Settings variables;
  secure::take_tls_variables(variables, secure::Scheme::open, environment);
  return fmt::format("{}://{}", variables.wants_tls() ? "batons" : "baton", address);
}

}  // namespace baton::cli
