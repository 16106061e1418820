#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/grpc/status.h"
#include "server/session/calls.h"
#include "server/session/items.h"
#include "server/session/running_operation.h"

namespace baton {

/// One unary call, from its request to its Finish(). A handle of a few pointers, copied into the
/// Call; gRPC owns what it points to, until finish(), which is called once.
class UnaryCall {
 public:
  UnaryCall(grpc::CallbackServerContext* context, std::shared_ptr<ServerState> state,
            Operation operation)
      : context_(context),
        reactor_(context->DefaultReactor()),
        running_(std::move(state), operation) {}

  [[nodiscard]] grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  [[nodiscard]] ServerState& state() const { return running_.state(); }

  /// Fails if the call must not be submitted any more. See RunningOperation::admit().
  [[nodiscard]] Status alive(bool late) const {
    BATON_TRY_STATUS(running_.admit(late));
    if (context_->IsCancelled()) return Error{Errc::cancelled, "before the broker began with it"};
    if (context_->deadline() <= std::chrono::system_clock::now()) {
      return Error{Errc::deadline_exceeded, "before the broker began with it"};
    }
    return {};
  }

  /// Logs a call that has changed something.
  template <class Wanted>
  void log_change(const Wanted& done) const {
    running_.log_change(done, [this] { return context_->peer(); });
  }

  void finish(const grpc::Status& status) const {
    add_retry_hint(*context_, status);
    running_.ended(static_cast<std::size_t>(status.error_code()));
    reactor_->Finish(status);
  }

 private:
  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;
  RunningOperation running_;
};

/// gRPC's own copy of a request. Nothing reads it afterwards, so its strings may be moved out of
/// it.
template <class Request>
Request& own(const Request* request) {
  return const_cast<Request&>(*request);  // NOLINT: gRPC made it non-const.
}

/// Runs a call with a single command. `reply(command)` fills in the response; the command's error,
/// if there is one, is the call's.
template <class Wanted, class Reply>
grpc::ServerUnaryReactor* run(UnaryCall call, Result<Wanted> command, Reply reply) {
  grpc::ServerUnaryReactor* const reactor = call.reactor();
  Status alive = call.alive(false);
  if (!command.has_value() || !alive.has_value()) {
    call.finish(to_status(command.has_value() ? alive.error() : command.error()));
    return reactor;
  }
  Broker& broker = call.state().broker;
  submit(broker, *std::move(command), Broker::Admission::bounded,
         [call = std::move(call), reply = std::move(reply)](Command* done) {
           if (done == nullptr) return call.finish(to_status(busy()));
           auto& answered = *answer_of<Wanted>(done);
           if (answered.error.has_value()) return call.finish(to_status(*answered.error));
           reply(answered);
           call.log_change(answered);
           call.finish(grpc::Status::OK);
         });
  return reactor;
}

/// Runs a call of many items. `reply(results)` fills in the response and returns the call's status.
template <class Wanted, class Reply>
grpc::ServerUnaryReactor* run_items(UnaryCall call, Result<CheckedItems<Wanted>> checked,
                                    Broker::Admission admission, Reply reply) {
  using Outcome = typename decltype(Wanted::outcomes)::value_type;
  grpc::ServerUnaryReactor* const reactor = call.reactor();
  Status alive = call.alive(admission == Broker::Admission::reserved);
  if (!checked.has_value() || !alive.has_value()) {
    call.finish(to_status(checked.has_value() ? alive.error() : checked.error()));
    return reactor;
  }
  const bool settled = checked->settled();
  Results<Outcome> results;
  results.items = checked->items;
  results.refused = std::move(checked->refused);
  if (settled) {
    call.finish(reply(results));
    return reactor;
  }
  Broker& broker = call.state().broker;
  submit(broker, std::move(checked->command), admission,
         [call = std::move(call), reply = std::move(reply),
          results = std::move(results)](Command* done) mutable {
           if (done == nullptr) return call.finish(to_status(busy()));
           results.outcomes = std::move(answer_of<Wanted>(done)->outcomes);
           call.finish(reply(results));
         });
  return reactor;
}

}  // namespace baton
