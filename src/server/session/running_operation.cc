#include "server/session/running_operation.h"

#include "base/assert.h"

namespace baton {

RunningSession::RunningSession(std::shared_ptr<ServerState> state, Operation operation,
                               std::shared_ptr<Session> session)
    : operation_(std::move(state), operation), session_(std::move(session)) {
  BATON_ASSERT(info_of(operation).shape == Shape::session);
  ServerState& server = operation_.state();
  server.counters.sessions_open.fetch_add(1, std::memory_order_relaxed);
  if (!server.sessions.add(session_)) session_->end(shutting_down());
}

RunningSession::~RunningSession() {
  ServerState& server = operation_.state();
  server.counters.sessions_open.fetch_sub(1, std::memory_order_relaxed);
  server.sessions.remove(session_);
}

}  // namespace baton
