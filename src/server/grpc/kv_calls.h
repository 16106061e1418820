#pragma once

#include <memory>
#include <string>

#include <baton/v1/kv.pb.h>

#include "server/grpc/stream_call.h"
#include "server/session/watch_session.h"

namespace baton {

/// The streaming call of the Kv service.
class WatchCall final : public StreamCall {
 public:
  explicit WatchCall(const std::shared_ptr<ServerState>& state)
      : WatchCall(std::make_shared<WatchSession>(state)) {}

 private:
  explicit WatchCall(const std::shared_ptr<WatchSession>& session)
      : StreamCall(session), session_(*session) {}

  Status take(grpc::ByteBuffer& request) override;
  std::string next_frame(Lock& lock) override;

  WatchSession& session_;
  v1::WatchKeysRequest request_;  // Reused for every request.
};

}  // namespace baton
