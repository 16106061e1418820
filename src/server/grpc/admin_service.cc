#include "server/grpc/admin_service.h"

#include <cstdint>
#include <vector>

#include "server/grpc/status.h"

namespace baton {
namespace {

void show(const ShardInspection& in, v1::Shard& out) {
  out.set_boot(in.boot);
  out.set_format_version(in.format_version);
  for (const TableInspection& table : in.tables) {
    v1::Table& shown = *out.add_tables();
    shown.set_name(table.name);
    shown.set_rows(table.rows);
    shown.set_bytes(table.bytes);
  }
  out.set_checkpoint_position(in.checkpoint_position);
  out.set_journal_first(in.journal_first);
  out.set_journal_next(in.journal_next);
  out.set_journal_durable(in.journal_durable);
  out.set_journal_bytes(in.journal_bytes);
}

}  // namespace

grpc::Status AdminService::Inspect(grpc::ServerContext* /*context*/,
                                   const v1::InspectRequest* /*request*/,
                                   v1::InspectResponse* response) {
  std::uint32_t number = 0;
  for (const ShardInspection& inspection : state_->broker.inspect()) {
    v1::Shard& shard = *response->add_shards();
    shard.set_number(number++);
    show(inspection, shard);
  }
  state_->counters.ended(Operation::inspect, grpc::StatusCode::OK);
  return grpc::Status::OK;
}

grpc::Status AdminService::Checkpoint(grpc::ServerContext* context,
                                      const v1::CheckpointRequest* /*request*/,
                                      v1::CheckpointResponse* /*response*/) {
  const Status made = state_->broker.checkpoint();
  const grpc::Status status = made.has_value() ? grpc::Status::OK : to_status(made.error());
  add_retry_hint(*context, status);
  state_->counters.ended(Operation::checkpoint, status.error_code());
  return status;
}

}  // namespace baton
