#pragma once

#include <baton/v1/error.pb.h>
#include <grpcpp/support/status.h>

#include "base/result.h"

namespace grpc {
class ServerContextBase;
}

namespace baton {

/// The gRPC code of a call that fails as a whole with `code`.
grpc::StatusCode status_code(Errc code);

/// "queue_not_found: orders": the message begins with the stable name, so that a program can
/// distinguish errors that share a gRPC code.
grpc::Status to_status(const Error& error);

/// The error of one item.
v1::Error to_proto(const Error& error);

/// Tells a client whose call ends with UNAVAILABLE when to try again (trailing metadata
/// `retry-after-ms`). Must be called before the call is finished.
void add_retry_hint(grpc::ServerContextBase& context, const grpc::Status& status);

}  // namespace baton
