#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/app/server_limits.h"
#include "server/session/limits.h"
#include "server/shard/broker.h"

namespace baton {

/// How clients reach the broker.
struct ServerOptions {
  std::string listen = "127.0.0.1:7470";
  std::string http_listen = "127.0.0.1:7471";  // Empty: no HTTP.
  bool insecure = false;                       // Allows plain text beyond this machine.
  // Paths of PEM files. A certificate needs its key, and a key its certificate; with a CA, clients
  // must show a certificate signed by it.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  // A connection that is silent for this long is pinged, and closed if it does not answer in time:
  // its consumers' messages go to others. A client with a lease may work until twice the broker's
  // lease after an unanswered ping (docs/adr/0010), so the timeout is not shorter: the lease
  // detects a silent cut.
  std::chrono::milliseconds keepalive_time{2000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  std::size_t message_bytes_max = limits::kRequestBytesDefault;
  // For the metrics: this build, and the folder whose disk is watched.
  std::string version;
  std::string data_folder;
  // Further clients are refused. The remaining descriptors of the process are for files.
  std::size_t connections_max = limits::kConnectionsDefault;
  // A connection that has not finished its handshake after this time is closed.
  std::chrono::milliseconds handshake_timeout{5000};
};

/// gRPC (Queues, Admin, health, reflection) and HTTP over one Broker, which must outlive it. Any
/// thread may call the methods, one thread at a time.
class ApiServer {
 public:
  /// Checks everything that can be refused before anything is opened: numbers, addresses,
  /// certificates.
  static Status check(const ServerOptions& options);
  /// Listens, but is not ready before set_ready(true). An error says what to change.
  static Result<std::unique_ptr<ApiServer>> start(Broker& broker, const ServerOptions& options);
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;
  ~ApiServer();

  /// The bound port; 0 for a unix socket.
  [[nodiscard]] int grpc_port() const;
  /// 0 without HTTP.
  [[nodiscard]] int http_port() const;

  /// Reads the certificates again, for new connections; the options may name other files. On an
  /// error, which names the file, nothing changes. Whether TLS is used, and whether clients need a
  /// certificate, must be the same as at the start.
  Status reload_certificates(const ServerOptions& options);

  /// Sets the answer of the health service and of /readyz.
  void set_ready(bool ready);
  /// Not ready, and new calls get UNAVAILABLE; acks, nacks and extends are still taken, and streams
  /// stay open.
  void stop_accepting();
  /// Ends every stream with UNAVAILABLE, after its outstanding confirmations, and waits for all
  /// calls; calls that take longer than `within` are cancelled. The broker must still be running.
  void shutdown(std::chrono::milliseconds within);

 private:
  struct Parts;
  explicit ApiServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace baton
