#include "server/http/http.h"

#include <utility>

#include "server/http/metrics.h"

namespace baton {

std::vector<HttpPort::Route> HttpServer::routes() {
  std::vector<HttpPort::Route> routes;
  routes.push_back({.path = "/healthz", .content_type = "text/plain", .slow = false, .answer = [] {
                      return HttpAnswer{.status = 200, .body = "ok\n"};
                    }});
  routes.push_back(
      {.path = "/readyz", .content_type = "text/plain", .slow = false, .answer = [this] {
         return ready_.load() ? HttpAnswer{.status = 200, .body = "ready\n"}
                              : HttpAnswer{.status = 503, .body = "not ready\n"};
       }});
  // Asks the shards and reads the disk.
  routes.push_back({.path = "/metrics",
                    .content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .slow = true,
                    .answer = [this] {
                      return HttpAnswer{.status = 200, .body = metrics_text(*state_, *facts_)};
                    }});
  return routes;
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(std::shared_ptr<ServerState> state,
                                                      std::shared_ptr<const ServerFacts> facts,
                                                      const ListenAddress& address,
                                                      std::size_t connections_max) {
  if (address.unix_socket) {
    return Error{Errc::invalid_argument, "HTTP cannot listen on a unix socket; write HOST:PORT"};
  }
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(state), std::move(facts)));
  BATON_TRY(http->port_, HttpPort::start({.address = address, .connections_max = connections_max},
                                         http->routes()));
  return http;
}

}  // namespace baton
