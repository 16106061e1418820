#include "server/app/server.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include "base/assert.h"
#include "base/net/listen.h"
#include "server/app/monitor.h"
#include "server/grpc/acceptor.h"
#include "server/grpc/admin_service.h"
#include "server/grpc/certificates.h"
#include "server/grpc/handshake_log.h"
#include "server/grpc/kv_service.h"
#include "server/grpc/queue_service.h"
#include "server/grpc/status.h"
#include "server/grpc/stream_service.h"
#include "server/http/http.h"
#include "server/session/server_state.h"

namespace baton {

// In the order of construction; destroyed in the opposite order.
struct ApiServer::Parts {
  explicit Parts(std::shared_ptr<ServerState> shared)
      : state(std::move(shared)), queues(state), streams(state), kv(state), admin(state) {}
  Status start_grpc(const ServerOptions& options);

  std::shared_ptr<ServerState> state;
  std::shared_ptr<ServerFacts> facts = std::make_shared<ServerFacts>();
  QueueService queues;
  StreamService streams;
  KvService kv;
  AdminService admin;
  std::shared_ptr<ServerCertificates> certificates;  // Null without TLS.
  std::unique_ptr<HttpServer> http;
  // Passes connections to gRPC.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<Monitor> monitor;
};

namespace {

client::TlsOptions tls_files(const ServerOptions& options) {
  return {
      .ca_file = options.tls_ca, .certificate_file = options.tls_cert, .key_file = options.tls_key};
}

/// Null without TLS.
Result<std::shared_ptr<ServerCertificates>> load_certificates(const ServerOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return Error{Errc::invalid_argument, "--tls-cert and --tls-key go together; one is missing"};
  }
  if (!options.tls_cert.empty()) return ServerCertificates::load(tls_files(options));
  if (!options.tls_ca.empty()) {
    return Error{Errc::invalid_argument, "--tls-ca needs --tls-cert and --tls-key"};
  }
  return std::shared_ptr<ServerCertificates>();
}

Status check_numbers(const ServerOptions& options) {
  const auto int_max = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (options.message_bytes_max < limits::kKiB || options.message_bytes_max > int_max) {
    return Error{Errc::invalid_argument,
                 fmt::format("message_bytes_max is {}; it may be {} to {}",
                             options.message_bytes_max, limits::kKiB, int_max)};
  }
  constexpr std::chrono::milliseconds kKeepaliveMax = std::chrono::hours{1};
  for (const auto value : {options.keepalive_time, options.keepalive_timeout}) {
    if (value < std::chrono::milliseconds{10} || value > kKeepaliveMax) {
      return Error{Errc::invalid_argument,
                   fmt::format("keepalive of {} ms; it may be 10 ms to 1 h", value.count())};
    }
  }
  return {};
}

/// Applies the options to gRPC.
void configure(grpc::ServerBuilder& builder, const ServerOptions& options) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             static_cast<int>(options.keepalive_time.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(options.keepalive_timeout.count()));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // An idle consumer sends no data, and must be pinged for as long as it is idle.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients may ping as often as the server does; by default gRPC would disconnect them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Covers TLS, and in plain text the time until the client's settings arrive.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(options.handshake_timeout.count()));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(limits::kCallsPerConnection));
  // Reflection is the only synchronous service.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
  // Their pollers sometimes miss the server's shutdown, and then sleep this long; the default of
  // ten seconds is most of the time that an operator allows for a shutdown.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::CQ_TIMEOUT_MSEC, 250);
}

/// A small number, and smaller still if there are few descriptors.
std::size_t http_connections_max(std::size_t connections_max) {
  return std::clamp(connections_max / 8, std::size_t{4}, std::size_t{64});
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

/// gRPC does not listen itself: its connections come from the acceptor.
Status ApiServer::Parts::start_grpc(const ServerOptions& options) {
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  configure(builder, options);
  door = builder.experimental().AddExternalConnectionAcceptor(
      External::FROM_FD,
      certificates == nullptr ? grpc::InsecureServerCredentials() : certificates->credentials());
  builder.RegisterService(&queues);
  builder.RegisterService(&streams);
  builder.RegisterService(&kv);
  builder.RegisterService(&admin);
  server = builder.BuildAndStart();
  if (server == nullptr) {
    return Error{Errc::invalid_argument,
                 options.tls_cert.empty()
                     ? "gRPC could not be started"
                     : fmt::format("the certificate {} and the key {} cannot be used",
                                   options.tls_cert, options.tls_key)};
  }
  acceptor->start([this](int listener, int connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters taken;
    taken.listener_fd = listener;
    taken.fd = connection;
    door->HandleNewConnection(&taken);
  });
  return {};
}

ApiServer::ApiServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ApiServer::~ApiServer() { shutdown(std::chrono::milliseconds{0}); }

Status ApiServer::check(const ServerOptions& options) {
  BATON_TRY_STATUS(check_numbers(options));
  BATON_TRY(const ListenAddress address, parse_listen(options.listen));
  BATON_TRY_STATUS(check_listen(address, !options.tls_cert.empty(), options.insecure));
  BATON_TRY_STATUS(load_certificates(options));
  if (options.http_listen.empty()) return {};
  BATON_TRY(const ListenAddress http, parse_listen(options.http_listen));
  return check_http_listen(http, options.insecure);
}

Result<std::unique_ptr<ApiServer>> ApiServer::start(Broker& broker, const ServerOptions& options) {
  BATON_TRY_STATUS(check(options));
  BATON_TRY(const ListenAddress address, parse_listen(options.listen));

  auto parts = std::make_unique<Parts>(std::make_shared<ServerState>(broker, random_seed()));
  parts->facts->version = options.version;
  parts->facts->data_folder = options.data_folder;
  if (!options.http_listen.empty()) {
    BATON_TRY(const ListenAddress http_address, parse_listen(options.http_listen));
    BATON_TRY(parts->http, HttpServer::start(parts->state, parts->facts, http_address,
                                             http_connections_max(options.connections_max)));
  }

  BATON_TRY(parts->acceptor, Acceptor::bind({.address = address,
                                             .tls = !options.tls_cert.empty(),
                                             .connections_max = options.connections_max,
                                             .greeting_timeout = options.handshake_timeout,
                                             .unacked_timeout = options.keepalive_timeout},
                                            parts->facts->connections));
  BATON_TRY(parts->certificates, load_certificates(options));
  BATON_TRY_STATUS(parts->start_grpc(options));
  std::unique_ptr<ApiServer> api(new ApiServer(std::move(parts)));
  api->set_ready(false);
  if (!options.tls_cert.empty()) watch_handshakes(api->parts_->facts->connections);
  api->parts_->monitor = std::make_unique<Monitor>(api->parts_->state);
  return api;
}

Status ApiServer::reload_certificates(const ServerOptions& options) {
  BATON_ASSERT((parts_->certificates == nullptr) == options.tls_cert.empty());
  return parts_->certificates == nullptr ? Status{}
                                         : parts_->certificates->reload(tls_files(options));
}

int ApiServer::grpc_port() const { return parts_->acceptor->port(); }

int ApiServer::http_port() const { return parts_->http == nullptr ? 0 : parts_->http->port(); }

void ApiServer::set_ready(bool ready) {
  if (parts_->server != nullptr) parts_->server->GetHealthCheckService()->SetServingStatus(ready);
  if (parts_->http != nullptr) parts_->http->set_ready(ready);
}

void ApiServer::stop_accepting() {
  set_ready(false);
  parts_->state->accepting.store(false);
  parts_->state->sessions.close();
}

void ApiServer::shutdown(std::chrono::milliseconds within) {
  if (parts_->server == nullptr) return;
  stop_accepting();
  const auto deadline = std::chrono::system_clock::now() + within;
  parts_->state->sessions.end_all(shutting_down());
  // Sessions end before connections: otherwise a client might see its connection close before it
  // has read why.
  parts_->state->sessions.wait_until_empty(deadline);
  parts_->acceptor->stop();
  parts_->server->Shutdown(deadline);
  parts_->server.reset();
  parts_->state->background.stop();
  parts_->monitor.reset();
  stop_watching_handshakes(parts_->facts->connections);
  // Last, so that a probe gets "not ready" until the end.
  if (parts_->http != nullptr) parts_->http->stop();
}

}  // namespace baton
