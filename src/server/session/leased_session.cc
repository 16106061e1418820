#include "server/session/leased_session.h"

#include <chrono>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr SessionTerms kTerms;

}  // namespace

std::optional<HeartbeatAnswer> LeasedSession::heard(std::uint64_t number, bool with_first_request) {
  if (!with_first_request && !has_lease()) {
    set_end(Error{Errc::invalid_argument,
                  "heartbeat: a call has one in its first request, or none at all"});
    return std::nullopt;
  }
  const Instant now = state_->broker.now();
  grant_.heard(now);
  const Instant until = grant_.until().value_or(now);
  until_ns_.store(until.ns, std::memory_order_relaxed);
  if (!std::exchange(watching_, true)) watch_lease(until);
  return HeartbeatAnswer{.number = number, .broker_time = now, .terms = kTerms};
}

std::optional<Instant> LeasedSession::lease_running() const {
  return grant_.is_over(state_->broker.now()) ? std::nullopt : grant_.until();
}

std::optional<Instant> LeasedSession::known_lease() const {
  const std::int64_t ns = until_ns_.load(std::memory_order_relaxed);
  if (ns == kNone) return std::nullopt;
  return Instant{ns};
}

void LeasedSession::watch_lease(Instant at) {
  const std::weak_ptr<Session> weak = weak_from_this();
  state_->background.post_at(at, [weak] {
    if (const auto session = weak.lock()) {
      static_cast<LeasedSession&>(*session).look_at_lease();
    }
  });
}

void LeasedSession::look_at_lease() {
  {
    const std::lock_guard lock(mutex_);
    if (ending()) return;
    const Instant now = state_->broker.now();
    if (!grant_.is_over(now)) return watch_lease(grant_.until().value_or(now));
    // Heartbeats may wait behind requests that the broker has not taken yet: that is not silence.
    if (!has_room()) return watch_lease(now + kTerms.heartbeat);
    set_cut_off(Error{Errc::unavailable,
                      fmt::format("no heartbeat arrived for {}: the lease of this call has ended",
                                  format_duration(kTerms.broker_lease))});
    lease_ended();
  }
  pump();
}

}  // namespace baton
