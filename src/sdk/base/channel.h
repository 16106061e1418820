#pragma once

#include <memory>
#include <optional>

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <baton/connection.h>
#include <baton/result.h>

#include "base/result.h"

namespace baton::client {

/// A channel with a connection of its own, made when first used. Fails on a malformed address, on
/// TLS files that cannot be read, and on absurd times.
Result<std::shared_ptr<grpc::Channel>> make_channel(const ConnectionOptions& options);

/// For a channel to any server: TLS, or plain text without `tls`. Fails on files that hold
/// something else than they should.
baton::Result<std::shared_ptr<grpc::ChannelCredentials>> make_credentials(
    const std::optional<TlsOptions>& tls);

/// `error`, or what one more connection shows to be behind it: see secure::explain_failure(). Only
/// for errors of the connection; it may take two seconds, so not for threads of gRPC.
Error explain(const ConnectionOptions& options, const Error& error);

}  // namespace baton::client
