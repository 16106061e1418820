#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/time.h"

/// The lease between one call and the broker, which heartbeats renew: a client that is cut off
/// stops before the broker gives its work to another. See docs/adr/0010 for reasons and numbers.
namespace baton {

struct SessionTerms {
  /// How often the client sends a heartbeat.
  Duration heartbeat = std::chrono::seconds{1};
  /// The client stops this long after it sent the last heartbeat that was acknowledged.
  Duration client_lease = std::chrono::seconds{4};
  /// The broker ends the session this long after it received the last heartbeat, a second later
  /// than the client: clocks whose rates are wrong by up to 11 % each, in opposite directions,
  /// still keep the order.
  Duration broker_lease = std::chrono::seconds{5};
  bool operator==(const SessionTerms&) const = default;
};

/// The broker's side: until when the client may be at work. Pure; broker time.
class SessionGrant {
 public:
  SessionGrant() = default;
  explicit SessionGrant(Duration lease) : lease_(lease) {}

  /// A heartbeat was received.
  void heard(Instant now) { until_ = now + lease_; }
  /// Whether the client renews a lease at all, that is, has sent a heartbeat.
  [[nodiscard]] bool granted() const { return until_.has_value(); }
  /// Before this time the client may be at work; nullopt for a client without heartbeats.
  [[nodiscard]] std::optional<Instant> until() const { return until_; }
  [[nodiscard]] bool is_over(Instant now) const { return until_.has_value() && *until_ <= now; }

 private:
  Duration lease_ = SessionTerms{}.broker_lease;
  std::optional<Instant> until_;
};

/// The client's side of one call: whether it may still work. Pure; the client's own clock, which
/// must go on while the process or the machine sleeps (CLOCK_BOOTTIME).
///
/// Invariant: once it has ended it never begins again. A late acknowledgement renews nothing,
/// because the lease counts from when the heartbeat was sent; nor does one that is just in time if
/// the lease before it has ended, because the client has told its program by then.
class SessionHold {
 public:
  /// Counts a heartbeat that is sent now; returns its number.
  std::uint64_t send(Instant now) {
    // The oldest cannot renew the lease any more.
    if (sent_.size() >= kSentMax) sent_.pop_front();
    sent_.push_back({++last_number_, now});
    return last_number_;
  }
  /// The broker has acknowledged this heartbeat. The broker's clock showed `broker_time` at some
  /// moment between the sending and now.
  void acknowledged(std::uint64_t number, Instant broker_time, const SessionTerms& terms,
                    Instant now) {
    while (!sent_.empty() && sent_.front().number < number) sent_.pop_front();
    if (sent_.empty() || sent_.front().number != number) return;
    const Instant sent = sent_.front().at;
    sent_.pop_front();
    terms_ = terms;
    if (has_ended(now)) return;
    broker_ahead_ = broker_time - sent;
    until_ = sent + terms.client_lease;
  }

  /// Whether the broker grants leases: it has acknowledged a heartbeat, in time or not.
  [[nodiscard]] bool granted() const { return until_.has_value(); }
  /// Whether the client may work now. Asked whenever something is handed out.
  [[nodiscard]] bool holds(Instant now) const { return until_.has_value() && now < *until_; }
  /// Whether a lease has ended: what the broker gave may be another client's.
  [[nodiscard]] bool has_ended(Instant now) const { return until_.has_value() && *until_ <= now; }
  /// When the lease ends unless it is renewed; nullopt before it has begun.
  [[nodiscard]] std::optional<Instant> until() const { return until_; }
  /// An upper bound of the broker's time: from the last acknowledgement, counted from when the
  /// heartbeat was sent.
  [[nodiscard]] std::optional<Instant> broker_time_at_most(Instant now) const {
    if (!granted()) return std::nullopt;
    return now + broker_ahead_;
  }
  [[nodiscard]] const SessionTerms& terms() const { return terms_; }

  struct Sent {
    std::uint64_t number = 0;
    Instant at;
  };
  /// Heartbeats that are not acknowledged, oldest first.
  [[nodiscard]] const std::deque<Sent>& outstanding() const { return sent_; }

 private:
  static constexpr std::size_t kSentMax = 64;

  SessionTerms terms_;
  std::deque<Sent> sent_;
  std::uint64_t last_number_ = 0;
  Duration broker_ahead_{0};
  std::optional<Instant> until_;
};

}  // namespace baton
