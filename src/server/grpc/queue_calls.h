#pragma once

#include <memory>
#include <string>

#include <baton/v1/queues.pb.h>

#include "core/queue/token.h"
#include "server/grpc/stream_call.h"
#include "server/session/consumer_session.h"
#include "server/session/enqueue_session.h"

/// The streaming calls of the Queues service.
namespace baton {

class EnqueueCall final : public StreamCall {
 public:
  explicit EnqueueCall(const std::shared_ptr<ServerState>& state)
      : EnqueueCall(std::make_shared<EnqueueSession>(state)) {}

 private:
  explicit EnqueueCall(const std::shared_ptr<EnqueueSession>& session)
      : StreamCall(session), session_(*session) {}

  Status take(grpc::ByteBuffer& request) override;
  std::string next_frame(Lock& lock) override;

  EnqueueSession& session_;
  v1::EnqueueRequest request_;  // Reused, so that its parts keep their memory.
};

/// Lease and Consume, whose responses have the same fields.
class ConsumerCall final : public StreamCall {
 public:
  explicit ConsumerCall(std::shared_ptr<ServerState> state)
      : ConsumerCall(state, std::make_shared<ConsumerSession>(state)) {}

  /// A Lease call's only request.
  void attach(AttachCommand command);

 private:
  ConsumerCall(std::shared_ptr<ServerState> state, const std::shared_ptr<ConsumerSession>& session)
      : StreamCall(session), state_(std::move(state)), session_(*session) {}

  Status take(grpc::ByteBuffer& request) override;
  std::string next_frame(Lock& lock) override;
  /// From now on tokens are those of `queue`.
  void use_tokens_of(const std::string& queue);

  std::shared_ptr<ServerState> state_;
  ConsumerSession& session_;
  v1::ConsumeRequest request_;  // Reused for every request.
  // Set by the start, and constant after that: frames are encoded while requests are taken.
  std::string queue_;
  QueueTokens tokens_;
};

}  // namespace baton
