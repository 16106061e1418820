#pragma once

#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "core/group/effects.h"
#include "core/group/types.h"

namespace baton {

/// What a client is told about its seat.
struct SeatUpdate {
  bool active = false;
  bool stepping_down = false;  // The client must answer with this generation.
  Generation generation;
  bool operator==(const SeatUpdate&) const = default;
};

/// What the connection has to do, in this order.
struct SeatActions {
  bool stop_delivery = false;
  std::optional<SeatUpdate> update;  // Tell the client.
  bool start_delivery = false;
  std::optional<GroupOffset> from;  // With start_delivery; nullopt: where the Start said.
  std::optional<Generation> reply;  // Tell the coordinator: step_down_replied().
  std::optional<Error> ended;       // Unregister, close the subscription with this error, log it.

  [[nodiscard]] bool empty() const {
    return !stop_delivery && !update && !start_delivery && !reply && !ended;
  }
};

/// The connection's side of one (subscription, partition) of a single-active group. Pure. Owned by
/// the connection that carries the subscription; not thread-safe.
///
/// What the owner promises:
/// - Messages of the coordinator arrive in order; those of a link that broke are dropped.
/// - self_fence() is called when the node's lease runs out: limits::kNodeLeaseNode after the node
///   sent its last acknowledged heartbeat. A link that comes back does not renew the lease of the
///   seats that were cut off with it. Only an Activate over the new link does, because the
///   coordinator's timer goes on until the coordinator has the connection's answer to its Check.
/// - Unknown ends the connection's subscriptions of that group, and their clients are told.
/// - A subscription or connection that ends while the link is down is reported when the link is
///   back, before the Check is answered.
///
/// Invariant: the seat delivers only while an Activate is the newest message that it has received,
/// and the lease has not ended.
class Seat {
 public:
  struct Options {
    Ticket ticket;
    bool ask_offset = false;  // The client's answer to the Activate says where to begin.
    Duration handover_timeout = limits::kHandoverTimeout;
  };
  enum class Phase : std::uint8_t {
    waiting,
    asking,  // Active; the client has not yet said where to begin.
    delivering,
    fenced,         // Was asking or delivering when the lease ran out.
    stepping_down,  // Delivery has stopped; the client finishes its current work.
    ended,
  };

  explicit Seat(Options options) : options_(options) {}

  SeatActions on(const CoordinatorEffects::Activate& told, Instant now);
  SeatActions on(const CoordinatorEffects::StepDown& told, Instant now);
  SeatActions on(const CoordinatorEffects::Inform& told);
  /// The client's answer to the Update of this generation. Answers to older ones change nothing.
  SeatActions client_replied(Generation generation, std::optional<GroupOffset> offset);
  /// The node's lease ran out.
  SeatActions self_fence();
  /// Ends the subscription of a client that has not answered in time.
  SeatActions expire(Instant now);
  /// When to call expire(); never() while nothing is asked of the client.
  [[nodiscard]] Instant deadline() const { return deadline_; }

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] bool delivering() const { return phase_ == Phase::delivering; }
  /// The generation of the last Activate: the application's fencing token. 0: none yet.
  [[nodiscard]] Generation epoch() const { return epoch_; }
  /// The newest generation that was heard.
  [[nodiscard]] Generation told() const { return told_; }
  /// The last StepDown that was answered. 0: none yet.
  [[nodiscard]] Generation answered() const { return answered_; }
  [[nodiscard]] Ticket ticket() const { return options_.ticket; }

 private:
  SeatActions begin(Instant now);
  void ask_client(Instant now) { deadline_ = now + options_.handover_timeout; }
  [[nodiscard]] bool holds() const { return phase_ == Phase::asking || delivering(); }

  Options options_;
  Phase phase_ = Phase::waiting;
  Generation told_;
  Generation epoch_;
  Generation answered_;
  std::optional<GroupOffset> stored_;  // From the last Activate.
  Instant deadline_ = Instant::never();
};

}  // namespace baton
