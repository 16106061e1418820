#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <baton/connection.h>
#include <baton/result.h>
#include <baton/v1/admin.grpc.pb.h>
#include <baton/v1/kv.grpc.pb.h>
#include <baton/v1/queues.grpc.pb.h>
#include <baton/v1/streams.grpc.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include "sdk/base/errors.h"

namespace baton::client {

/// How one call differs from the others of its connection.
struct CallTerms {
  std::optional<std::chrono::milliseconds> deadline{};  // [The connection's]; 0 = none.
  bool patient = false;  // Wait for the broker to come back, within the deadline.
};

/// One channel, and the broker's services behind it. Immutable, so thread-safe.
struct Connection {
  ConnectionOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::StreamService::Stub> streams;
  std::unique_ptr<v1::KvService::Stub> kv;
  std::unique_ptr<v1::AdminService::Stub> admin;

  /// One unary call: `method` is the stub's.
  template <class Stub, class Request, class Response>
  Result<Response> call(Stub& stub,
                        grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, const CallTerms& terms = {}) const {
    grpc::ClientContext context;
    const std::chrono::milliseconds within = terms.deadline.value_or(options.deadline);
    if (within.count() > 0) context.set_deadline(std::chrono::system_clock::now() + within);
    context.set_wait_for_ready(terms.patient);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return from_grpc(status, options.address);
    return response;
  }
};

/// Fails as make_channel() does.
Result<ConnectionPointer> make_connection(ConnectionOptions options);

}  // namespace baton::client
