#pragma once

#include <future>
#include <memory>
#include <utility>
#include <variant>

#include "server/shard/broker.h"

/// For tests: runs one command through a running broker or shard.
namespace baton {

/// Gives its command to a promise; a dropped call breaks the promise.
class PromisedCall final : public Call {
 public:
  PromisedCall(Command wanted, std::promise<Command> promise)
      : Call(std::move(wanted)), promise_(std::move(promise)) {}
  void complete() override { promise_.set_value(std::move(command)); }

 private:
  std::promise<Command> promise_;
};

/// Executes `command`, which belongs to `Machine`, and waits. False if the broker refuses or drops
/// it.
template <class Machine, class Wanted>
bool execute_on(Broker& broker, Wanted& command) {
  std::promise<Command> promise;
  std::future<Command> done = promise.get_future();
  std::unique_ptr<Call> call =
      std::make_unique<PromisedCall>(Machine(std::move(command)), std::move(promise));
  if (!broker.submit(call, Broker::Admission::reserved)) return false;
  try {
    command = std::get<Wanted>(std::get<Machine>(done.get()));
  } catch (const std::future_error&) {
    return false;
  }
  return true;
}

}  // namespace baton
