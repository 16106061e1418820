#include "server/grpc/leased_stream.h"

#include <chrono>

#include <fmt/format.h>

#include "server/grpc/status.h"

namespace baton {
namespace {

constexpr SessionTerms kTerms;

std::uint64_t in_ms(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

std::optional<v1::HeartbeatAck> LeasedStream::heard(const v1::Heartbeat& heartbeat,
                                                    bool with_first_request) {
  if (!with_first_request && !has_lease()) {
    set_end(
        to_status({Errc::invalid_argument, "heartbeat: a call begins with one, or goes without"}));
    return std::nullopt;
  }
  const Instant now = state_->broker.now();
  grant_.heard(now);
  const Instant until = grant_.until().value_or(now);
  until_ns_.store(until.ns, std::memory_order_relaxed);
  if (!std::exchange(watching_, true)) watch_lease(until);
  v1::HeartbeatAck ack;
  ack.set_number(heartbeat.number());
  ack.set_broker_time_ns(now.ns);
  ack.set_heartbeat_ms(in_ms(kTerms.heartbeat));
  ack.set_client_lease_ms(in_ms(kTerms.client_lease));
  ack.set_broker_lease_ms(in_ms(kTerms.broker_lease));
  return ack;
}

std::optional<Instant> LeasedStream::lease_running() const {
  return grant_.is_over(state_->broker.now()) ? std::nullopt : grant_.until();
}

std::optional<Instant> LeasedStream::known_lease() const {
  const std::int64_t ns = until_ns_.load(std::memory_order_relaxed);
  if (ns == kNone) return std::nullopt;
  return Instant{ns};
}

void LeasedStream::watch_lease(Instant at) {
  const std::weak_ptr<Stream> weak = weak_from_this();
  state_->background.post_at(at, [weak] {
    if (const auto stream = weak.lock()) static_cast<LeasedStream&>(*stream).look_at_lease();
  });
}

void LeasedStream::look_at_lease() {
  {
    const std::lock_guard lock(mutex_);
    if (ending()) return;
    const Instant now = state_->broker.now();
    if (!grant_.is_over(now)) return watch_lease(grant_.until().value_or(now));
    // Heartbeats may wait behind what the broker itself has not taken yet: that is not silence.
    if (!has_room()) return watch_lease(now + kTerms.heartbeat);
    set_cut_off(to_status(
        {Errc::unavailable, fmt::format("no heartbeat came for {}: the lease of this call is over",
                                        format_duration(kTerms.broker_lease))}));
    lease_ended();
  }
  pump();
}

}  // namespace baton
