#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <baton/connection.h>
#include <baton/v1/kv.grpc.pb.h>

#include "sdk/base/errors.h"

namespace baton::client {

using KvStub = v1::Kv::Stub;

/// The unary calls of one connection. Thread-safe.
struct KvCalls {
  using Deadline = std::optional<std::chrono::milliseconds>;

  ConnectionOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<KvStub> stub;

  KvCalls(ConnectionOptions connection, std::shared_ptr<grpc::Channel> over)
      : options(std::move(connection)), channel(std::move(over)), stub(v1::Kv::NewStub(channel)) {}

  /// One call; `method` is the stub's. Without a deadline of its own it uses the connection's.
  template <class Request, class Response>
  Result<Response> call(grpc::Status (KvStub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                        const Request& request, Deadline deadline) {
    grpc::ClientContext context;
    const std::chrono::milliseconds within = deadline.value_or(options.deadline);
    if (within.count() > 0) context.set_deadline(std::chrono::system_clock::now() + within);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return from_grpc(status, options.address);
    return response;
  }
};

}  // namespace baton::client
