#include "server/session/change_log.h"

#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include "base/logging/log.h"

namespace baton {
namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr std::uint64_t kLinesPerInterval = 50;

}  // namespace

std::string change_field(std::string_view name, std::string_view value) {
  return fmt::format("{}={}", name, log_value(value));
}

ChangeLog::ChangeLog() : gate_(kInterval, kLinesPerInterval) {}

bool ChangeLog::takes(Operation operation) { return !info_of(operation).event.empty(); }

void ChangeLog::add(Operation operation, std::string_view fields, std::string_view peer,
                    Instant now) {
  if (!takes(operation) || fields.empty()) return;
  const auto held_back = gate_.pass(now);
  if (!held_back.has_value()) return;
  const std::string more = *held_back == 0 ? "" : fmt::format(" suppressed={}", *held_back);
  log_event(LogLevel::info, fmt::format("event={} {} peer={}{}", info_of(operation).event, fields,
                                        log_value(peer), more));
}

}  // namespace baton
