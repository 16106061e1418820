#pragma once

#include <atomic>
#include <memory>

#include "base/net/connections.h"
#include "base/net/listen.h"
#include "base/result.h"
#include "server/http/http_port.h"
#include "server/session/server_state.h"

namespace baton {

/// `/metrics`, `/healthz` (the process answers) and `/readyz` (200 if it takes work, otherwise
/// 503).
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(std::shared_ptr<ServerState> state,
                                                   std::shared_ptr<const ServerFacts> facts,
                                                   const ListenAddress& address,
                                                   std::size_t connections_max);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer() = default;

  [[nodiscard]] int port() const { return port_->port(); }
  void set_ready(bool ready) { ready_.store(ready); }
  /// Closes the port and joins the threads. May be called twice.
  void stop() { port_->stop(); }

 private:
  HttpServer(std::shared_ptr<ServerState> state, std::shared_ptr<const ServerFacts> facts)
      : state_(std::move(state)), facts_(std::move(facts)) {}
  std::vector<HttpPort::Route> routes();

  std::shared_ptr<ServerState> state_;
  std::shared_ptr<const ServerFacts> facts_;
  std::atomic<bool> ready_{false};
  std::unique_ptr<HttpPort> port_;
};

}  // namespace baton
