#pragma once

#include <baton/v1/admin.grpc.pb.h>

#include <memory>

#include "server/session/server_state.h"

namespace baton {

/// `baton.v1.Admin`. Synchronous, unlike Queues: its calls wait for the disk, on threads of gRPC's
/// pool that nothing else needs.
class AdminService final : public v1::Admin::Service {
 public:
  explicit AdminService(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  grpc::Status Inspect(grpc::ServerContext* context, const v1::InspectRequest* request,
                       v1::InspectResponse* response) override;
  grpc::Status Checkpoint(grpc::ServerContext* context, const v1::CheckpointRequest* request,
                          v1::CheckpointResponse* response) override;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace baton
