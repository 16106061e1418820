#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include <baton/v1/admin.grpc.pb.h>

#include "server/grpc/unary.h"
#include "server/session/server_state.h"
#include "server/shard/task_thread.h"

namespace baton {

/// `baton.v1.AdminService`. Its calls wait for the disk, one after the other on their own thread,
/// so that they block no thread of gRPC.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  explicit AdminService(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Inspect(Context* context, const v1::InspectRequest* request,
                   v1::InspectResponse* response) override;
  Reactor* Checkpoint(Context* context, const v1::CheckpointRequest* request,
                      v1::CheckpointResponse* response) override;

 private:
  /// Runs `work` on the thread, and ends the call with its result.
  Reactor* run_slowly(const UnaryCall& call, std::function<Status()> work);

  std::shared_ptr<ServerState> state_;
  std::atomic<std::size_t> waiting_{0};  // Calls, including the one that runs.
  // Last: it is stopped before the other members are destroyed.
  TaskThread thread_;
};

}  // namespace baton
