#include "core/group/seat.h"

#include <fmt/format.h>

namespace baton {

SeatActions Seat::on(const CoordinatorEffects::Activate& told, Instant now) {
  if (told.ticket != options_.ticket || phase_ == Phase::ended) return {};
  const bool again = told.generation == told_ && phase_ == Phase::fenced;
  if (told.generation <= told_ && !again) return {};
  told_ = told.generation;
  epoch_ = told.generation;
  stored_ = told.offset;
  return begin(now);
}

SeatActions Seat::begin(Instant now) {
  SeatActions actions;
  actions.update = SeatUpdate{.active = true, .stepping_down = false, .generation = epoch_};
  if (options_.ask_offset) {
    phase_ = Phase::asking;
    ask_client(now);
    return actions;
  }
  phase_ = Phase::delivering;
  deadline_ = Instant::never();
  actions.start_delivery = true;
  actions.from = stored_;
  return actions;
}

SeatActions Seat::on(const CoordinatorEffects::StepDown& told, Instant now) {
  if (told.ticket != options_.ticket || phase_ == Phase::ended) return {};
  SeatActions actions;
  if (told.generation <= told_) {
    // The answer was lost in a cut. The client has given it, and is not asked again.
    if (told.generation == answered_) actions.reply = answered_;
    return actions;
  }
  told_ = told.generation;
  if (phase_ == Phase::waiting) {
    // The Activate before it was lost in a cut: there is nothing to stop and no client to ask.
    answered_ = told.generation;
    actions.reply = answered_;
    return actions;
  }
  actions.stop_delivery = delivering();
  actions.update = SeatUpdate{.active = false, .stepping_down = true, .generation = told_};
  phase_ = Phase::stepping_down;
  ask_client(now);
  return actions;
}

SeatActions Seat::on(const CoordinatorEffects::Inform& told) {
  if (told.ticket != options_.ticket || phase_ == Phase::ended || told.generation < told_)
    return {};
  SeatActions actions;
  told_ = told.generation;
  if (holds()) {
    actions.stop_delivery = delivering();
    actions.update = SeatUpdate{.active = false, .stepping_down = false, .generation = told_};
  }
  phase_ = Phase::waiting;
  deadline_ = Instant::never();
  return actions;
}

SeatActions Seat::client_replied(Generation generation, std::optional<GroupOffset> offset) {
  SeatActions actions;
  if (generation != told_) return actions;
  if (phase_ == Phase::stepping_down) {
    phase_ = Phase::waiting;
    answered_ = generation;
    actions.reply = generation;
  } else if (phase_ == Phase::asking) {
    phase_ = Phase::delivering;
    actions.start_delivery = true;
    actions.from = offset.has_value() ? offset : stored_;
  } else {
    return actions;
  }
  deadline_ = Instant::never();
  return actions;
}

SeatActions Seat::self_fence() {
  SeatActions actions;
  if (!holds()) return actions;
  actions.stop_delivery = delivering();
  actions.update = SeatUpdate{.active = false, .stepping_down = false, .generation = told_};
  phase_ = Phase::fenced;
  deadline_ = Instant::never();
  return actions;
}

SeatActions Seat::expire(Instant now) {
  SeatActions actions;
  if (deadline_ == Instant::never() || now < deadline_) return actions;
  const std::string_view question =
      phase_ == Phase::asking ? "where to begin" : "the request to step down";
  actions.ended =
      Error{Errc::handover_timeout,
            fmt::format("the client did not answer {} (generation {}) within {}", question,
                        told_.value, format_duration(options_.handover_timeout))};
  phase_ = Phase::ended;
  deadline_ = Instant::never();
  return actions;
}

}  // namespace baton
