#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <baton/connection.h>
#include <baton/v1/session.pb.h>
#include <fmt/format.h>
#include <grpcpp/alarm.h>

#include "core/lease/session_lease.h"
#include "sdk/base/boot_clock.h"
#include "sdk/base/errors.h"
#include "sdk/base/link.h"
#include "sdk/base/times.h"

namespace baton::client {

/// A Link whose calls have a lease each (lease/session_lease.h). It sends heartbeats; when none was
/// acknowledged for the time of the lease, it treats the connection as lost, although it still
/// stands: the broker will give to others what it gave to this call.
///
/// The derived class calls may_work() whenever it hands something out: a process that was stopped
/// finds its lease over before any timer has fired. A broker that acknowledges no heartbeat grants
/// no lease, and what it gives may be worked on while the connection stands.
template <class Request, class Response>
class LeasedLink : public Link<Request, Response> {
 protected:
  using Base = Link<Request, Response>;
  using Lock = typename Base::Lock;

  LeasedLink(ConnectionOptions connection, bool reconnect)
      : Base(std::move(connection), reconnect) {}

  // All of these run under the lock.

  /// Called by session_opened().
  void begin_lease() {
    hold_ = {};
    in_session_ = true;
    heartbeat_due_ = true;
    if (!looks_ && !this->closing_) look_again();
  }
  /// Called by disconnected().
  void close_lease() { in_session_ = false; }
  [[nodiscard]] bool heartbeat_is_due() const { return heartbeat_due_; }
  /// Called by next_frame() with the frame to send; returns whether a heartbeat was added.
  bool fill_heartbeat(Request& frame) {
    if (!std::exchange(heartbeat_due_, false)) return false;
    const Instant now = boot_now();
    heartbeat_at_ = now;
    frame.mutable_heartbeat()->set_number(hold_.send(now));
    return true;
  }
  /// Called by received(), before anything else in the response is read.
  void take_heartbeat(const Response& response) {
    if (!response.has_heartbeat()) return;
    const v1::HeartbeatAck& ack = response.heartbeat();
    const SessionTerms terms{.heartbeat = duration_of(ack.heartbeat_interval()),
                             .client_lease = duration_of(ack.client_lease()),
                             .broker_lease = duration_of(ack.broker_lease())};
    hold_.acknowledged(ack.number(), {since_1970(ack.broker_time()).count()}, terms, boot_now());
  }

  /// Whether what the broker gave may still be worked on now.
  [[nodiscard]] bool may_work() const {
    return in_session_ && (!hold_.granted() || hold_.holds(boot_now()));
  }
  [[nodiscard]] bool lease_has_ended() const { return hold_.has_ended(boot_now()); }
  /// An upper bound of the broker's present time; nullopt when the broker does not tell it.
  [[nodiscard]] std::optional<Instant> broker_time_at_most() const {
    return hold_.broker_time_at_most(boot_now());
  }
  [[nodiscard]] SessionLease lease_now() const {
    SessionLease lease{.is_valid = may_work(), .is_renewed = in_session_ && hold_.granted()};
    const std::optional<Instant> until = hold_.until();
    if (lease.is_valid && lease.is_renewed && until) {
      lease.left = std::chrono::floor<std::chrono::milliseconds>(*until - boot_now());
    }
    return lease;
  }
  /// Called when the lease has ended. Overridden to do more than give up the session.
  virtual void lease_ended(Lock& lock) { give_up_session(lock); }
  /// Treats the connection as lost.
  void give_up_session(Lock& lock) { this->break_session(lock, lost_error()); }
  [[nodiscard]] Error lost_error() const {
    return Error{
        Errc::lease_lost,
        fmt::format("the broker at {} acknowledged no heartbeat for {}: the lease is over",
                    this->connection_.address, format_duration(hold_.terms().client_lease))};
  }

  void cancel_alarms() override {
    if (alarm_) alarm_->Cancel();
  }

 private:
  void look_again() {
    looks_ = true;
    const Instant now = boot_now();
    Instant next = heartbeat_at_ + hold_.terms().heartbeat;
    if (const std::optional<Instant> until = hold_.until()) next = std::min(next, *until);
    const Duration wait = std::max<Duration>(next - now, std::chrono::milliseconds{1});
    this->run_at(SteadyClock::now() + wait, alarm_, [this](Lock& lock) { look(lock); });
  }
  void look(Lock& lock) {
    looks_ = false;
    if (!in_session_) return;
    const Instant now = boot_now();
    if (hold_.has_ended(now)) return lease_ended(lock);
    if (now - heartbeat_at_ >= hold_.terms().heartbeat) heartbeat_due_ = true;
    look_again();
    this->pump(lock);
  }

  SessionHold hold_;
  bool in_session_ = false;
  bool heartbeat_due_ = false;
  bool looks_ = false;  // An alarm is set.
  Instant heartbeat_at_{};
  std::unique_ptr<grpc::Alarm> alarm_;
};

}  // namespace baton::client
