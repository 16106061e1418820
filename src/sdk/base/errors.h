#pragma once

#include <string>
#include <string_view>

#include <baton/result.h>
#include <grpcpp/support/status.h>

namespace baton::v1 {
class Error;
}

namespace baton::client {

/// An item's error, as the broker sent it. A code that is not in errc.def keeps its name: the text
/// begins with it.
Error from_proto(const v1::Error& error);
/// The Error of a failed call: the broker's own if the status carries one in its details; otherwise
/// what gRPC says, with the address where the broker could not be reached.
Error from_grpc(const grpc::Status& status, std::string_view address);
/// Whether a stream that ended with `status` is worth opening again. After a refusal it is not: the
/// answer would be the same.
bool is_worth_retrying(const grpc::Status& status);

}  // namespace baton::client
