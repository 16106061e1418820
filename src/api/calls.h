#pragma once

#include <memory>
#include <utility>

#include "broker/broker.h"

namespace baton {

/// A call that tells `Done` how it ended: with the command, its outcomes filled in, or with nullptr
/// when the broker did not take it or dropped it (it is full, or stopping; it must not be called
/// from there). Exactly once in either case, so whatever `Done` holds on to is always finished.
template <class Done>
class CallThen final : public Call {
 public:
  // By value and moved: what Done holds on to must live as long as the call.
  CallThen(QueueCommand wanted, Done done)  // NOLINT(performance-unnecessary-value-param)
      : Call(std::move(wanted)), done_(std::move(done)) {}
  CallThen(const CallThen&) = delete;
  CallThen& operator=(const CallThen&) = delete;
  ~CallThen() override {
    if (!completed_) done_(static_cast<QueueCommand*>(nullptr));
  }

  void complete() override {
    completed_ = true;
    done_(&command);
  }

 private:
  Done done_;
  bool completed_ = false;
};

/// Hands `command` to the shard of its queue. `done` is called in any case, see CallThen.
template <class Done>
void submit(Broker& broker, QueueCommand command, Broker::Admission admission, Done done) {
  std::unique_ptr<Call> call =
      std::make_unique<CallThen<Done>>(std::move(command), std::move(done));
  // Not taken: the call is still ours, and its end says so.
  if (!broker.submit(call, admission)) call.reset();
}

}  // namespace baton
