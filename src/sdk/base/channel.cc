#include "sdk/base/channel.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/address.h"
#include "base/result.h"
#include "base/secure/pem.h"
#include "base/secure/probe.h"
#include "sdk/base/errors.h"

namespace baton::client {
namespace {

constexpr std::chrono::seconds kExplainWithin{2};

/// What the address and the options together ask for.
struct Target {
  std::string address;
  std::optional<TlsOptions> tls;
};

Result<Target> target_of(const ConnectionOptions& options) {
  auto parsed = parse_broker_address(options.address);
  if (!parsed) return Error{Errc::invalid_argument, parsed.error().text};
  Target target{.address = std::move(parsed->address), .tls = options.tls};
  if (parsed->is_tls && !target.tls) target.tls.emplace();
  return target;
}

int as_int(std::chrono::milliseconds duration) {
  return static_cast<int>(
      std::clamp<std::int64_t>(duration.count(), 0, std::numeric_limits<int>::max()));
}

grpc::ChannelArguments make_arguments(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  // A connection per channel: two streams of a process do not share one socket's throughput.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The size of a frame is bounded by the in-flight limits that the broker keeps.
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // gRPC must not wait longer than our own backoff does, or a stream could not reconnect in time.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   std::max(100, as_int(options.reconnect_min)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, std::max(100, as_int(options.reconnect_max)));
  if (options.keepalive_interval.count() > 0) {
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, as_int(options.keepalive_interval));
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, as_int(options.keepalive_timeout));
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return arguments;
}

}  // namespace

Result<std::shared_ptr<grpc::ChannelCredentials>> make_credentials(
    const std::optional<TlsOptions>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  BATON_TRY(secure::Pem pem, secure::read_pem(*tls));
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = std::move(pem.ca);
  options.pem_cert_chain = std::move(pem.certificate);
  options.pem_private_key = std::move(pem.key);
  return grpc::SslCredentials(options);
}

Result<std::shared_ptr<grpc::Channel>> make_channel(const ConnectionOptions& options) {
  BATON_TRY(const Target target, target_of(options));
  if (options.reconnect_min.count() <= 0 || options.reconnect_max < options.reconnect_min) {
    return Error{Errc::invalid_argument, "0 < reconnect_min <= reconnect_max does not hold"};
  }
  const auto credentials = make_credentials(target.tls);
  if (!credentials) return Error{Errc::invalid_argument, credentials.error().text};
  return grpc::CreateCustomChannel(target.address, *credentials, make_arguments(options));
}

Error explain(const ConnectionOptions& options, const Error& error) {
  if (error.code != Errc::unavailable && error.code != Errc::deadline_exceeded) return error;
  const auto target = target_of(options);
  if (!target) return error;
  const auto found = secure::explain_failure({.who = "the broker",
                                              .address = target->address,
                                              .plain = "baton",
                                              .secure = "batons",
                                              .tls = target->tls},
                                             kExplainWithin);
  if (!found) return error;
  return Error{static_cast<Errc>(found->code), found->text};
}

}  // namespace baton::client
