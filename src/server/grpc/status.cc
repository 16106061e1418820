#include "server/grpc/status.h"

#include <baton/v1/status.pb.h>
#include <grpcpp/server_context.h>

#include "server/session/limits.h"

namespace baton {

grpc::StatusCode status_code(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::malformed: return grpc::StatusCode::INVALID_ARGUMENT;
    case Errc::not_found:
    case Errc::queue_not_found:
    case Errc::stream_not_found:
    case Errc::partition_not_found:
    case Errc::bucket_not_found:
    case Errc::message_not_found: return grpc::StatusCode::NOT_FOUND;
    case Errc::already_exists:
    case Errc::queue_exists:
    case Errc::bucket_exists:
    case Errc::stream_exists: return grpc::StatusCode::ALREADY_EXISTS;
    // RESOURCE_EXHAUSTED is for configured limits; a full disk is a temporary state.
    case Errc::journal_full:
    case Errc::disk_full:
    case Errc::unavailable: return grpc::StatusCode::UNAVAILABLE;
    case Errc::resource_exhausted:
    case Errc::queue_full:
    case Errc::dedup_full: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Errc::offset_out_of_range: return grpc::StatusCode::OUT_OF_RANGE;
    case Errc::failed_precondition:
    case Errc::stale_epoch:
    case Errc::sequence_gap:
    case Errc::producer_fenced:
    case Errc::read_only:
    case Errc::handover_timeout:
    case Errc::revision_mismatch:
    case Errc::lease_lost: return grpc::StatusCode::FAILED_PRECONDITION;
    case Errc::deadline_exceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Errc::cancelled: return grpc::StatusCode::CANCELLED;
    default: return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status to_status(const Error& error) {
  // gRPC has fewer codes than Baton: the details carry Baton's code.
  const grpc::StatusCode code = status_code(error.code);
  v1::CallStatus details;
  details.set_code(code);
  details.set_message(to_string(error));
  details.add_details()->PackFrom(to_proto(error));
  return {code, details.message(), details.SerializeAsString()};
}

v1::Error to_proto(const Error& error) {
  v1::Error out;
  out.set_code(static_cast<std::uint32_t>(error.code));
  out.set_name(std::string(errc_name(error.code)));
  out.set_text(error.text.empty() ? std::string(errc_text(error.code)) : error.text);
  return out;
}

void add_retry_hint(grpc::ServerContextBase& context, const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return;
  context.AddTrailingMetadata("retry-after-ms", std::to_string(limits::kRetryAfter.count()));
}

}  // namespace baton
