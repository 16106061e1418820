#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <baton/connection.h>
#include <baton/v1/streams.grpc.pb.h>

#include "sdk/base/errors.h"

namespace baton::client {

using StreamsStub = v1::Streams::Stub;

/// The unary calls of one connection. Thread-safe.
struct StreamCalls {
  ConnectionOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<StreamsStub> stub;

  StreamCalls(ConnectionOptions connection, std::shared_ptr<grpc::Channel> over)
      : options(std::move(connection)),
        channel(std::move(over)),
        stub(v1::Streams::NewStub(channel)) {}

  /// One call; `method` is the stub's. `patient`: waits for a broker that cannot be reached yet.
  template <class Request, class Response>
  Result<Response> call(grpc::Status (StreamsStub::*method)(grpc::ClientContext*, const Request&,
                                                            Response*),
                        const Request& request, bool patient = false) {
    grpc::ClientContext context;
    if (options.deadline.count() > 0) {
      context.set_deadline(std::chrono::system_clock::now() + options.deadline);
    }
    context.set_wait_for_ready(patient);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return from_grpc(status, options.address);
    return response;
  }
};

}  // namespace baton::client
