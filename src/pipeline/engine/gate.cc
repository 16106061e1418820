#include "pipeline/engine/gate.h"

#include <ctime>

namespace baton::pipeline {

Instant boot_time() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return {(std::int64_t{time.tv_sec} * 1'000'000'000) + time.tv_nsec};
}

/// Called under the lock.
void Gate::changed() {
  const flow::Breaker::State state = breaker_.state();
  closed_.store(state == flow::Breaker::State::closed && !letters_out_since_.has_value(),
                std::memory_order_release);
  if (state_ == flow::Breaker::State::closed && state == flow::Breaker::State::open) ++outages_;
  state_ = state;
  moved_.notify_all();
}

bool Gate::wait(const std::function<bool()>& give_up) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  while (!breaker_.may_send()) {
    if (give_up()) return false;
    moved_.wait_for(lock, kLook);
  }
  return true;
}

void Gate::give_back() {
  const std::scoped_lock lock(mutex_);
  breaker_.give_back();
  moved_.notify_all();
}

bool Gate::wait_while_halted(const std::function<bool()>& give_up) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  while (breaker_.state() == flow::Breaker::State::halted) {
    if (give_up()) return false;
    moved_.wait_for(lock, kLook);
  }
  return true;
}

void Gate::succeeded() {
  const std::scoped_lock lock(mutex_);
  breaker_.succeeded(boot_time());
  if (state_ != flow::Breaker::State::closed) changed();
}

void Gate::failed(const std::string& why, Duration retry_after) {
  const std::scoped_lock lock(mutex_);
  if (breaker_.failed(why, boot_time(), retry_after)) changed();
}

void Gate::open(const std::string& why, Duration retry_after) {
  const std::scoped_lock lock(mutex_);
  breaker_.open(why, boot_time(), retry_after);
  changed();
}

void Gate::halt(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  breaker_.halt(why, boot_time());
  changed();
}

void Gate::resume() {
  const std::scoped_lock lock(mutex_);
  storm_.reset();
  breaker_.resume(boot_time());
  changed();
}

void Gate::passed(flow::StormGuard::Judge judge, std::size_t count) {
  if (count == 0) return;
  const std::scoped_lock lock(mutex_);
  storm_.good(judge, count);
}

bool Gate::admit_poison(flow::StormGuard::Judge judge) {
  const std::scoped_lock lock(mutex_);
  if (!storm_.poison(judge)) return true;
  breaker_.halt(
      "too many records in a row, or of the last ones, cannot be written: is this a bug in a "
      "deployment? Nothing more is dead-lettered",
      boot_time());
  changed();
  return false;
}

void Gate::letters_failed(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  letters_why_ = why;
  if (++letters_waiting_ == 1) letters_out_since_ = boot_time();
  changed();
}

void Gate::letters_over() {
  const std::scoped_lock lock(mutex_);
  if (--letters_waiting_ == 0) letters_out_since_.reset();
  changed();
}

void Gate::set_options(flow::Breaker::Options breaker, flow::StormGuard::Options storm) {
  const std::scoped_lock lock(mutex_);
  breaker_.set_options(breaker, boot_time());
  storm_ = flow::StormGuard(storm);
  outage_max_ = breaker.outage_max;
}

std::optional<Instant> Gate::probe_at() const {
  const std::scoped_lock lock(mutex_);
  return breaker_.probe_at();
}

void Gate::probed(const std::optional<std::string>& error) {
  const std::scoped_lock lock(mutex_);
  breaker_.probed(!error.has_value(), error.value_or(""), boot_time());
  changed();
}

bool Gate::is_out() const {
  const std::scoped_lock lock(mutex_);
  const flow::Breaker::State state = breaker_.state();
  return state == flow::Breaker::State::open || state == flow::Breaker::State::halted;
}

bool Gate::outage_is_too_long() const {
  const std::scoped_lock lock(mutex_);
  const Instant now = boot_time();
  const bool letters = outage_max_ > Duration::zero() && letters_out_since_.has_value() &&
                       now - *letters_out_since_ > outage_max_;
  return letters || breaker_.outage_is_too_long(now);
}

std::uint32_t Gate::batch_percent() const {
  const std::scoped_lock lock(mutex_);
  return breaker_.batch_percent(boot_time());
}

std::uint64_t Gate::outages() const {
  const std::scoped_lock lock(mutex_);
  return outages_;
}

Gate::Shown Gate::shown() const {
  const std::scoped_lock lock(mutex_);
  Shown shown{.state = breaker_.state(), .why = breaker_.why(), .outage = std::nullopt};
  if (const auto since = breaker_.outage_since()) shown.outage = boot_time() - *since;
  if (letters_out_since_.has_value() && !shown.outage.has_value()) {
    shown.state = flow::Breaker::State::open;
    shown.why = letters_why_;
    shown.outage = boot_time() - *letters_out_since_;
    shown.of_letters = true;
  }
  return shown;
}

}  // namespace baton::pipeline
