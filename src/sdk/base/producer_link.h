#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <baton/result.h>
#include <fmt/format.h>

#include "sdk/base/link.h"

namespace baton::client {

/// The link of a producer: refuses what comes after close(), and knows the first failure since the
/// last flush. All members are used under `mutex_`.
template <class Request, class Response>
class ProducerLink : public Link<Request, Response> {
 protected:
  using typename Link<Request, Response>::Lock;
  using Link<Request, Response>::Link;

  /// Why nothing more is accepted, if so.
  [[nodiscard]] std::optional<Error> refusal() const {
    if (this->over_) return this->over_;
    if (closed_) return Error{Errc::cancelled, "the producer is closed"};
    return std::nullopt;
  }
  /// Takes the lock: refuses what comes from now on.
  void refuse_more() {
    const Lock lock(this->mutex_);
    closed_ = true;
    this->changed_.notify_all();
  }
  /// The rest of a flush, which counts in flushes_: waits until `settled`. `unconfirmed` says at
  /// the deadline what is missing, for example "3 records".
  template <class Settled, class Unconfirmed>
  Status end_flush(Lock& lock, SteadyClock::time_point deadline, const Settled& settled,
                   const Unconfirmed& unconfirmed) {
    const bool done = this->changed_.wait_until(lock, deadline, settled);
    --flushes_;
    if (auto failure = std::exchange(first_failure_, std::nullopt); failure) return *failure;
    if (done) return {};
    return Error{Errc::deadline_exceeded, fmt::format("{} are not confirmed yet", unconfirmed())};
  }

  std::size_t flushes_ = 0;
  bool closed_ = false;
  std::optional<Error> first_failure_;
};

}  // namespace baton::client
