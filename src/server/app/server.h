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

/// How the broker is reached.
struct ServerOptions {
  std::string listen = "127.0.0.1:7470";
  std::string http_listen = "127.0.0.1:7471";  // Empty: no HTTP.
  bool insecure = false;                       // Allows plain text beyond this machine.
  // Paths of PEM files. A certificate and its key go together; with a CA, clients must show a
  // certificate signed by it.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  // A connection that is silent for this long is pinged, and closed when it does not answer in
  // time: its consumers' messages go to others. A client with a lease may work until twice the
  // broker's lease after a ping that was not answered (docs/adr/0010), so the time-out is not
  // shorter: the lease finds a silent cut.
  std::chrono::milliseconds keepalive_time{2000};
  std::chrono::milliseconds keepalive_timeout{10'000};
  std::size_t message_bytes_max = limits::kRequestBytesDefault;
  // For the metrics: this build, and the folder whose disk is to be watched.
  std::string version;
  std::string data_folder;
  // Further clients are refused. What the process may open beyond it is for files.
  std::size_t connections_max = limits::kConnectionsDefault;
  // A connection that has not finished its handshake by then is closed.
  std::chrono::milliseconds handshake_timeout{5000};
};

/// gRPC (Queues, Admin, health, reflection) and HTTP over one Broker, which must outlive it.
/// The methods may be called by any one thread.
class ApiServer {
 public:
  /// Everything that can be refused before anything is opened: numbers, addresses, certificates.
  static Status check(const ServerOptions& options);
  /// Listens, but is not ready before set_ready(true). An error says what to change.
  static Result<std::unique_ptr<ApiServer>> start(Broker& broker, const ServerOptions& options);
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;
  ~ApiServer();

  /// The port bound, 0 for a unix socket.
  [[nodiscard]] int grpc_port() const;
  /// 0 when there is no HTTP.
  [[nodiscard]] int http_port() const;

  /// Reads the certificates again, for connections to come; the options may name other files. On an
  /// error, which names the file, everything stays as it was. Whether TLS is spoken, and whether
  /// clients need a certificate, must be as it was at the start.
  Status reload_certificates(const ServerOptions& options);

  /// What the health service and /readyz say.
  void set_ready(bool ready);
  /// Not ready, and new calls get UNAVAILABLE; acks, nacks and extends are still taken, and streams
  /// stay open.
  void stop_accepting();
  /// Ends every stream with UNAVAILABLE, after what it has to confirm, and waits for all calls;
  /// those that take longer than `within` are cancelled. The broker must still be running.
  void shutdown(std::chrono::milliseconds within);

 private:
  struct Parts;
  explicit ApiServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace baton
