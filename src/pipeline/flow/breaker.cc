#include "pipeline/flow/breaker.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::flow {

std::string_view to_string(Breaker::State state) {
  static constexpr std::array<std::string_view, 4> kNames = {"closed", "open", "half_open",
                                                             "halted"};
  return kNames.at(std::to_underlying(state));
}

void Breaker::set_options(Options options, Instant now) {
  options_ = options;
  if (state_ == State::open)
    probe_at_ = std::min(probe_at_, now + options_.probe.steady(1, random_));
}

bool Breaker::may_send() {
  if (state_ == State::closed) return true;
  if (state_ != State::half_open || trial_) return false;
  trial_ = true;
  return true;
}

void Breaker::record(bool good, Instant now) {
  while (!calls_.empty() && calls_.front().at + options_.window < now) {
    failing_ -= calls_.front().good ? 0 : 1;
    calls_.pop_front();
  }
  calls_.push_back({now, good});
  failing_ += good ? 0 : 1;
}

void Breaker::close(Instant now) {
  state_ = State::closed;
  trial_ = false;
  calls_.clear();
  failing_ = 0;
  probes_ = 0;
  outage_since_.reset();
  closed_since_ = now;
}

void Breaker::succeeded(Instant now) {
  if (state_ == State::half_open) return close(now);
  if (state_ == State::closed) record(true, now);
}

bool Breaker::failed(std::string why, Instant now, Duration retry_after) {
  if (state_ == State::half_open) {
    open(std::move(why), now, retry_after);
    return true;
  }
  if (state_ != State::closed) return false;
  record(false, now);
  const bool too_many = calls_.size() >= options_.window_calls &&
                        std::size_t{failing_} * 100 >= calls_.size() * options_.failing_percent;
  if (too_many) open(std::move(why), now, retry_after);
  return too_many;
}

void Breaker::open(std::string why, Instant now, Duration retry_after) {
  if (state_ == State::halted) return;
  why_ = std::move(why);
  // A lane that fails late does not change when the next probe is due.
  if (state_ == State::open) return;
  state_ = State::open;
  trial_ = false;
  calls_.clear();
  failing_ = 0;
  if (!outage_since_.has_value()) outage_since_ = now;
  probe_at_ = now + std::max(options_.probe.steady(++probes_, random_), retry_after);
}

void Breaker::halt(std::string why, Instant now) {
  state_ = State::halted;
  trial_ = false;
  why_ = std::move(why);
  if (!outage_since_.has_value()) outage_since_ = now;
}

void Breaker::resume(Instant now) {
  if (state_ != State::halted) return;
  state_ = State::open;
  outage_since_ = now;  // The time until the operator acted does not count as outage.
  probe_at_ = now;
}

std::optional<Instant> Breaker::probe_at() const {
  if (state_ != State::open) return std::nullopt;
  return probe_at_;
}

void Breaker::probed(bool good, std::string why, Instant now) {
  if (state_ != State::open) return;
  if (good) {
    state_ = State::half_open;
    trial_ = false;
    return;
  }
  why_ = std::move(why);
  probe_at_ = now + options_.probe.steady(++probes_, random_);
}

bool Breaker::outage_is_too_long(Instant now) const {
  // Half open without a trial: the source has nothing to try, which does not mean that the sink is
  // unavailable.
  const bool is_out = state_ == State::open || (state_ == State::half_open && trial_);
  return options_.outage_max > Duration::zero() && is_out && outage_since_.has_value() &&
         now >= *outage_since_ + options_.outage_max;
}

std::uint32_t Breaker::batch_percent(Instant now) const {
  if (!closed_since_.has_value() || now >= *closed_since_ + options_.slow_start) return 100;
  const auto part = (now - *closed_since_).count() * 100 / options_.slow_start.count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(part, 10, 100));
}

}  // namespace baton::flow
