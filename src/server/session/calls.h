#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "server/shard/broker.h"

namespace baton {

/// A call that passes its end to `Done`: the command with its outcomes, or nullptr if the broker
/// did not take it or dropped it (it is full, or stopping, and must not be called from there).
/// Called exactly once in either case, so everything that `Done` holds is always finished.
template <class Done>
class CallThen final : public Call {
 public:
  // By value and moved: what Done holds must live as long as the call.
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

/// The command that a call returns, by its type; null if the call returned nothing.
template <class Wanted>
Wanted* answer_of(Command* done) {
  if (done == nullptr) return nullptr;
  return std::visit(
      []<class OfMachine>(OfMachine& command) -> Wanted* {
        // Only one machine has such a command, and it is the one that was asked.
        if constexpr (std::is_constructible_v<OfMachine, Wanted>) {
          return &std::get<Wanted>(command);
        } else {
          BATON_ASSERT(false);
          return nullptr;
        }
      },
      *done);
}

/// Gives `command` to the shard of its queue, stream or bucket. `done` is called in any case, see
/// CallThen.
template <class Done>
void submit(Broker& broker, Command command, Broker::Admission admission, Done done) {
  std::unique_ptr<Call> call =
      std::make_unique<CallThen<Done>>(std::move(command), std::move(done));
  // Not taken: the call is destroyed here, which calls `done`.
  if (!broker.submit(call, admission)) call.reset();
}

}  // namespace baton
