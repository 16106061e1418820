#include "server/grpc/admin_service.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace baton {
namespace {

void show(const ShardInspection& in, v1::InspectResponse::Shard& out) {
  out.set_boot(in.boot);
  out.set_format_version(in.format_version);
  for (const TableInspection& table : in.tables) {
    v1::InspectResponse::Table& shown = *out.add_tables();
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

/// The most calls that wait or run at a time.
constexpr std::size_t kCallsMax = 16;

}  // namespace

AdminService::Reactor* AdminService::Inspect(Context* context,
                                             const v1::InspectRequest* /*request*/,
                                             v1::InspectResponse* response) {
  const UnaryCall call(context, state_, Operation::inspect);
  return run_slowly(call, [response, state = state_]() -> Status {
    std::uint32_t number = 0;
    for (const ShardInspection& inspection : state->broker.inspect()) {
      v1::InspectResponse::Shard& shard = *response->add_shards();
      shard.set_number(number++);
      show(inspection, shard);
    }
    return {};
  });
}

AdminService::Reactor* AdminService::Checkpoint(Context* context,
                                                const v1::CheckpointRequest* /*request*/,
                                                v1::CheckpointResponse* /*response*/) {
  const UnaryCall call(context, state_, Operation::checkpoint);
  return run_slowly(call, [state = state_] { return state->broker.checkpoint(); });
}

AdminService::Reactor* AdminService::run_slowly(const UnaryCall& call,
                                                std::function<Status()> work) {
  Reactor* const reactor = call.reactor();
  if (const Status alive = call.alive(false); !alive.has_value()) {
    call.finish(to_status(alive.error()));
  } else if (waiting_.fetch_add(1) >= kCallsMax) {
    waiting_.fetch_sub(1);
    call.finish(to_status(busy()));
  } else {
    thread_.post([this, call, work = std::move(work)] {
      const Status done = work();
      waiting_.fetch_sub(1);
      call.finish(done.has_value() ? grpc::Status::OK : to_status(done.error()));
    });
  }
  return reactor;
}

}  // namespace baton
