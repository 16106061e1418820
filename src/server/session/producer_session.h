#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "server/session/calls.h"
#include "server/session/limits.h"
#include "server/session/server_state.h"
#include "server/session/session.h"

namespace baton {

/// Takes requests and returns confirmations: one `Confirmation` per request, in the order of the
/// requests, each when the request's contents are durable. At most limits::kStreamBatches requests
/// and about limits::kStreamBytes are under way; at the limit no request is read, and the
/// protocol's flow control holds the producer back.
///
/// Submitted requests are completed even if the client goes away; it just gets no confirmation.
///
/// Owned and locked like every Session (see there).
template <class Confirmation>
class ProducerSession : public Session {
 public:
  using Output = Confirmation;

  /// The next confirmation. Called with the lock held.
  Output take_output() {
    Output output = std::move(slots_.front().output);
    bytes_ -= slots_.front().bytes;
    slots_.pop_front();
    return output;
  }

 protected:
  struct Slot {
    std::size_t bytes = 0;  // Of the request on the wire.
    Output output;
    bool done = false;
    bool abandoned = false;  // The broker dropped the request: it will never be confirmed.
  };

  explicit ProducerSession(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  /// The next request's place among the confirmations; its address stays valid.
  Slot& add_slot(Slot slot) {
    const std::lock_guard lock(mutex_);
    bytes_ += slot.bytes;
    return slots_.emplace_back(std::move(slot));
  }
  /// Submits the request's command; `confirm(done, slot.output)` fills in the result.
  template <class Wanted, class Confirm>
  void submit_for(Slot& slot, Wanted command, Confirm confirm) {
    auto self = std::static_pointer_cast<ProducerSession>(shared_from_this());
    submit(state_->broker, std::move(command), Broker::Admission::reserved,
           [self = std::move(self), &slot, confirm](Command* done) {
             {
               const std::lock_guard lock(self->mutex_);
               if (done == nullptr) {
                 slot.abandoned = true;
                 self->set_end(busy());
               } else {
                 confirm(*answer_of<Wanted>(done), slot.output);
                 slot.done = true;
               }
             }
             self->pump();
           });
  }

 private:
  [[nodiscard]] bool has_room() const override {
    return slots_.size() < limits::kStreamBatches && bytes_ < limits::kStreamBytes;
  }
  [[nodiscard]] bool has_output() const override { return !slots_.empty() && slots_.front().done; }
  [[nodiscard]] bool settled() const override { return slots_.empty() || slots_.front().abandoned; }

  std::shared_ptr<ServerState> state_;
  std::deque<Slot> slots_;  // In the order of the requests.
  std::size_t bytes_ = 0;   // Of the slots.
};

}  // namespace baton
