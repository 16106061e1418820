#include <baton/admin_client.h>

#include <memory>
#include <utility>

#include <grpcpp/client_context.h>

#include <baton/v1/admin.grpc.pb.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"

namespace baton::client {

struct AdminClient::State {
  ConnectionOptions options;
  std::unique_ptr<v1::Admin::Stub> stub;

  void limit(grpc::ClientContext& context) const {
    if (options.deadline.count() <= 0) return;
    context.set_deadline(std::chrono::system_clock::now() + options.deadline);
  }
};

namespace {

ShardInfo from_proto(const v1::Shard& shard) {
  ShardInfo info{.boot = shard.boot(),
                 .format_version = shard.format_version(),
                 .tables = {},
                 .checkpoint_position = shard.checkpoint_position(),
                 .journal_first = shard.journal_first(),
                 .journal_next = shard.journal_next(),
                 .journal_durable = shard.journal_durable(),
                 .journal_bytes = shard.journal_bytes()};
  for (const v1::Table& table : shard.tables()) {
    info.tables.push_back({.name = table.name(), .rows = table.rows(), .bytes = table.bytes()});
  }
  return info;
}

}  // namespace

AdminClient::AdminClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
AdminClient::AdminClient(AdminClient&&) noexcept = default;
AdminClient& AdminClient::operator=(AdminClient&&) noexcept = default;
AdminClient::~AdminClient() = default;

Result<AdminClient> AdminClient::connect(ConnectionOptions options) {
  auto state = std::make_unique<State>();
  BATON_TRY(const auto channel, make_channel(options));
  state->stub = v1::Admin::NewStub(channel);
  state->options = std::move(options);
  return AdminClient(std::move(state));
}

Status AdminClient::checkpoint() {
  grpc::ClientContext context;
  state_->limit(context);
  v1::CheckpointResponse response;
  const grpc::Status status = state_->stub->Checkpoint(&context, {}, &response);
  if (!status.ok()) return from_grpc(status, state_->options.address);
  return {};
}

Result<std::vector<ShardInfo>> AdminClient::inspect() {
  grpc::ClientContext context;
  state_->limit(context);
  v1::InspectResponse response;
  const grpc::Status status = state_->stub->Inspect(&context, {}, &response);
  if (!status.ok()) return from_grpc(status, state_->options.address);
  std::vector<ShardInfo> shards;
  for (const v1::Shard& shard : response.shards()) shards.push_back(from_proto(shard));
  return shards;
}

}  // namespace baton::client
