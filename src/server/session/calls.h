#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "server/shard/broker.h"

namespace baton {

/// A call that tells `Done` how it ended: with the command, its outcomes filled in, or with nullptr
/// when the broker did not take it or dropped it (it is full, or stopping; it must not be called
/// from there). Exactly once in either case, so whatever `Done` holds on to is always finished.
template <class Done>
class CallThen final : public Call {
 public:
  // By value and moved: what Done holds on to must live as long as the call.
  CallThen(Command wanted, Done done)  // NOLINT(performance-unnecessary-value-param)
      : Call(std::move(wanted)), done_(std::move(done)) {}
  CallThen(const CallThen&) = delete;
  CallThen& operator=(const CallThen&) = delete;
  ~CallThen() override {
    if (!completed_) done_(static_cast<Command*>(nullptr));
  }

  void complete() override {
    completed_ = true;
    done_(&command);
  }

 private:
  Done done_;
  bool completed_ = false;
};

/// What a call brought back, as the command that it was; null when it brought nothing.
template <class Wanted>
Wanted* answer_of(Command* done) {
  if (done == nullptr) return nullptr;
  if constexpr (std::is_constructible_v<QueueCommand, Wanted>) {
    return &std::get<Wanted>(std::get<QueueCommand>(*done));
  } else if constexpr (std::is_constructible_v<KvCommand, Wanted>) {
    return &std::get<Wanted>(std::get<KvCommand>(*done));
  } else {
    return &std::get<Wanted>(std::get<StreamCommand>(*done));
  }
}

/// Hands `command` to the shard of its queue, stream or bucket. `done` is called in any case, see
/// CallThen.
template <class Done>
void submit(Broker& broker, Command command, Broker::Admission admission, Done done) {
  std::unique_ptr<Call> call =
      std::make_unique<CallThen<Done>>(std::move(command), std::move(done));
  // Not taken: the call is still ours, and its end says so.
  if (!broker.submit(call, admission)) call.reset();
}

}  // namespace baton
