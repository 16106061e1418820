#include "client_base/channel.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/result.h"
#include "client_base/errors.h"

namespace baton::client {
namespace {

Status check_address(std::string_view address) {
  if (address.starts_with("unix:") || address.starts_with("unix-abstract:")) return {};
  const auto colon = address.rfind(':');
  if (colon != std::string_view::npos && colon > 0) {
    const std::string_view port = address.substr(colon + 1);
    std::uint16_t number = 0;
    const auto [end, problem] = std::from_chars(port.begin(), port.end(), number);
    if (problem == std::errc{} && end == port.end() && number != 0) return {};
  }
  return make_error(Code::invalid_argument,
                    fmt::format("address \"{}\" is not of the form host:port", address));
}

Result<std::string> read_pem(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file || content.empty()) {
    return make_error(Code::invalid_argument, fmt::format("cannot read the TLS file {}", path));
  }
  return content;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> make_credentials(
    const ConnectionOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  if (options.tls->certificate_file.empty() != options.tls->key_file.empty()) {
    return make_error(Code::invalid_argument, "a TLS certificate and its key go together");
  }
  grpc::SslCredentialsOptions tls;
  BATON_TRY(tls.pem_root_certs, read_pem(options.tls->ca_file));
  BATON_TRY(tls.pem_cert_chain, read_pem(options.tls->certificate_file));
  BATON_TRY(tls.pem_private_key, read_pem(options.tls->key_file));
  return grpc::SslCredentials(tls);
}

int as_int(std::chrono::milliseconds duration) {
  return static_cast<int>(
      std::clamp<std::int64_t>(duration.count(), 0, std::numeric_limits<int>::max()));
}

grpc::ChannelArguments make_arguments(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  // Connections of their own: two streams of a process do not share one socket's throughput.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // What one frame may hold is bounded by the in-flight limits that the broker keeps.
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

Result<std::shared_ptr<grpc::Channel>> make_channel(const ConnectionOptions& options) {
  BATON_TRY_STATUS(check_address(options.address));
  if (options.reconnect_min.count() <= 0 || options.reconnect_max < options.reconnect_min) {
    return make_error(Code::invalid_argument, "0 < reconnect_min <= reconnect_max does not hold");
  }
  BATON_TRY(const auto credentials, make_credentials(options));
  return grpc::CreateCustomChannel(options.address, credentials, make_arguments(options));
}

}  // namespace baton::client
