#pragma once

#include <memory>

#include <grpcpp/channel.h>

#include <baton/connection.h>
#include <baton/result.h>

namespace baton::client {

/// A channel with a connection of its own, made when first used. Fails on a malformed address, on
/// TLS files that cannot be read, and on absurd times.
Result<std::shared_ptr<grpc::Channel>> make_channel(const ConnectionOptions& options);

}  // namespace baton::client
