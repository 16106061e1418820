#include <memory>
#include <utility>

#include <baton/broker.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/connection.h"

namespace baton::client {
namespace {

using Stub = v1::AdminService::Stub;

ShardInfo from_proto(const v1::InspectResponse::Shard& shard) {
  ShardInfo info{.boot = shard.boot(),
                 .format_version = shard.format_version(),
                 .tables = {},
                 .checkpoint_position = shard.checkpoint_position(),
                 .journal_first = shard.journal_first(),
                 .journal_next = shard.journal_next(),
                 .journal_durable = shard.journal_durable(),
                 .journal_bytes = shard.journal_bytes()};
  for (const v1::InspectResponse::Table& table : shard.tables()) {
    info.tables.push_back({.name = table.name(), .rows = table.rows(), .bytes = table.bytes()});
  }
  return info;
}

}  // namespace

Result<ConnectionPointer> make_connection(ConnectionOptions options) {
  auto connection = std::make_shared<Connection>();
  BATON_TRY(connection->channel, make_channel(options));
  connection->options = std::move(options);
  connection->queues = v1::QueueService::NewStub(connection->channel);
  connection->streams = v1::StreamService::NewStub(connection->channel);
  connection->kv = v1::KvService::NewStub(connection->channel);
  connection->admin = v1::AdminService::NewStub(connection->channel);
  return connection;
}

Result<Broker> Broker::open(ConnectionOptions options) {
  BATON_TRY(auto connection, make_connection(std::move(options)));
  return Broker(std::move(connection));
}

Status Broker::wait_until_ready(std::chrono::milliseconds timeout) const {
  if (connection_->channel->WaitForConnected(std::chrono::system_clock::now() + timeout)) return {};
  return Error{Errc::unavailable, fmt::format("cannot reach the broker at {} within {} ms",
                                              connection_->options.address, timeout.count())};
}

Status Broker::checkpoint() const {
  BATON_TRY_STATUS(
      connection_->call(*connection_->admin, &Stub::Checkpoint, v1::CheckpointRequest()));
  return {};
}

Result<std::vector<ShardInfo>> Broker::shards() const {
  BATON_TRY(const auto response,
            connection_->call(*connection_->admin, &Stub::Inspect, v1::InspectRequest()));
  std::vector<ShardInfo> shards;
  for (const v1::InspectResponse::Shard& shard : response.shards())
    shards.push_back(from_proto(shard));
  return shards;
}

}  // namespace baton::client
