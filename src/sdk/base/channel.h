#pragma once

#include <memory>
#include <optional>

#include <baton/connection.h>
#include <baton/result.h>
#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include "base/result.h"

namespace baton::client {

/// A channel with a connection of its own, made when first used. Fails on a malformed address, on
/// TLS files that cannot be read, and on times outside their limits.
Result<std::shared_ptr<grpc::Channel>> make_channel(const ConnectionOptions& options);

/// Credentials for a channel to any server: TLS, or plain text without `tls`. Fails on files that
/// do not hold what they should.
Result<std::shared_ptr<grpc::ChannelCredentials>> make_credentials(
    const std::optional<TlsOptions>& tls);

/// `error`, or the cause that one more connection shows: see secure::explain_failure(). Only for
/// errors of the connection; it may take two seconds, so do not call it on a thread of gRPC.
Error explain(const ConnectionOptions& options, const Error& error);

}  // namespace baton::client
