#pragma once

#include <memory>
#include <string>

#include <baton/v1/streams.pb.h>

#include "server/grpc/stream_call.h"
#include "server/session/append_session.h"
#include "server/session/read_session.h"
#include "server/session/subscription_session.h"

/// The streaming calls of the Streams service.
namespace baton {

class AppendCall final : public StreamCall {
 public:
  explicit AppendCall(const std::shared_ptr<ServerState>& state)
      : AppendCall(std::make_shared<AppendSession>(state)) {}

 private:
  explicit AppendCall(const std::shared_ptr<AppendSession>& session)
      : StreamCall(session), session_(*session) {}

  Status take(grpc::ByteBuffer& request) override;
  std::string next_frame(Lock& lock) override;

  AppendSession& session_;
};

class ReadCall final : public StreamCall {
 public:
  explicit ReadCall(const std::shared_ptr<ReadSession>& session)
      : StreamCall(session), session_(*session) {}

 private:
  std::string next_frame(Lock& lock) override;
  [[nodiscard]] grpc::Status to_grpc(const Status& status) const override;

  ReadSession& session_;
};

class SubscribeCall final : public StreamCall {
 public:
  explicit SubscribeCall(const std::shared_ptr<ServerState>& state)
      : SubscribeCall(std::make_shared<SubscriptionSession>(state)) {}

 private:
  explicit SubscribeCall(const std::shared_ptr<SubscriptionSession>& session)
      : StreamCall(session), session_(*session) {}

  Status take(grpc::ByteBuffer& request) override;
  std::string next_frame(Lock& lock) override;

  SubscriptionSession& session_;
  // Reused, so that their parts keep their memory. For the read under way,
  v1::SubscribeRequest request_;
  subscription::Request wanted_;
  // and for the write.
  subscription::Output output_;
};

}  // namespace baton
