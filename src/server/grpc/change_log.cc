#include "server/grpc/change_log.h"

#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include "base/logging/log.h"

namespace baton {
namespace {

constexpr std::chrono::seconds kInterval{1};
constexpr std::uint64_t kLinesPerInterval = 50;

/// The name in the log; empty where calls are not told.
std::string_view event_of(Method method) {
  switch (method) {
    case Method::create_queue: return "create_queue";
    case Method::update_queue: return "update_queue";
    case Method::delete_queue: return "delete_queue";
    case Method::purge: return "purge_queue";
    case Method::redrive: return "redrive_queue";
    case Method::create_stream: return "create_stream";
    case Method::update_stream: return "update_stream";
    case Method::delete_stream: return "delete_stream";
    case Method::evaluate_group: return "evaluate_group";
    case Method::delete_group: return "delete_group";
    case Method::set_group_offsets: return "set_group_offsets";
    case Method::create_bucket: return "create_bucket";
    case Method::delete_bucket: return "delete_bucket";
    default: return {};
  }
}

}  // namespace

std::string change_field(std::string_view name, std::string_view value) {
  return fmt::format("{}={}", name, log_value(value));
}

ChangeLog::ChangeLog() : gate_(kInterval, kLinesPerInterval) {}

bool ChangeLog::takes(Method method) { return !event_of(method).empty(); }

void ChangeLog::add(Method method, std::string_view fields, std::string_view peer, Instant now) {
  if (!takes(method) || fields.empty()) return;
  const auto held_back = gate_.pass(now);
  if (!held_back.has_value()) return;
  const std::string more = *held_back == 0 ? "" : fmt::format(" suppressed={}", *held_back);
  log_event(LogLevel::info,
            fmt::format("event={} {} peer={}{}", event_of(method), fields, log_value(peer), more));
}

}  // namespace baton
