#include "server/grpc/kv_calls.h"

#include <utility>
#include <variant>

#include "server/grpc/heartbeat.h"
#include "server/grpc/kv_convert.h"
#include "server/grpc/parse_request.h"

namespace baton {
namespace {

v1::WatchKeysResponse::Change::Kind to_proto(KvChange::Kind kind) {
  switch (kind) {
    case KvChange::Kind::put: return v1::WatchKeysResponse::Change::KIND_PUT;
    case KvChange::Kind::removed: return v1::WatchKeysResponse::Change::KIND_REMOVED;
    case KvChange::Kind::expired: return v1::WatchKeysResponse::Change::KIND_EXPIRED;
  }
  return v1::WatchKeysResponse::Change::KIND_UNSPECIFIED;
}

void add(const WatchSession::Started& piece, v1::WatchKeysResponse& out) {
  out.mutable_started()->set_resumed(piece.resumed);
}
void add(const WatchSession::Compacted& piece, v1::WatchKeysResponse& out) {
  using Reason = WatchSession::Compacted::Reason;
  out.mutable_compacted()->set_reason(piece.reason == Reason::resume
                                          ? v1::WatchKeysResponse::Compacted::REASON_RESUME
                                          : v1::WatchKeysResponse::Compacted::REASON_FELL_BEHIND);
}
void add(const KvEntryRef& piece, v1::WatchKeysResponse& out) { show(*piece, *out.add_snapshot()); }
void add(const WatchSession::SnapshotEnd& piece, v1::WatchKeysResponse& out) {
  out.mutable_snapshot_end()->set_revision(piece.revision.value);
}
void add(const KvChange& piece, v1::WatchKeysResponse& out) {
  v1::WatchKeysResponse::Change& change = *out.add_changes();
  change.set_kind(to_proto(piece.kind));
  show(*piece.entry, *change.mutable_entry());
}
void add(const KvSessionLost& piece, v1::WatchKeysResponse& out) {
  v1::WatchKeysResponse::SessionLost& lost = *out.add_sessions_lost();
  lost.set_key(piece.key);
  lost.set_revision(piece.revision.value);
}
void add(const WatchSession::CompleteTo& piece, v1::WatchKeysResponse& out) {
  out.set_complete_to(piece.revision.value);
}

void add(const HeartbeatAnswer& piece, v1::WatchKeysResponse& out) {
  *out.mutable_heartbeat() = to_proto(piece);
}

}  // namespace

Status WatchCall::take(grpc::ByteBuffer& request) {
  BATON_TRY_STATUS(parse_request(request, request_));
  WatchSession::Request wanted{.goodbye = request_.goodbye()};
  if (request_.has_heartbeat()) wanted.heartbeat = request_.heartbeat().number();
  if (request_.has_start()) wanted.start = convert(request_.start());
  session_.take(std::move(wanted));
  return {};
}

std::string WatchCall::next_frame(Lock& lock) {
  const WatchSession::Output output = session_.take_output();
  // The shard's thread must not wait for the copying.
  lock.unlock();
  v1::WatchKeysResponse response;
  for (const WatchSession::Piece& piece : output) {
    std::visit([&](const auto& part) { add(part, response); }, piece);
  }
  return response.SerializeAsString();
}

}  // namespace baton
