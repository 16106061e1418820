#include "api/http.h"

#include <fmt/format.h>
#include <httplib.h>

#include <thread>
#include <utility>

#include "api/metrics.h"

namespace baton {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kBodyBytes = 4096;  // Nobody has reason to send one.

}  // namespace

// Keeps the library's header, which is most of a megabyte of code, out of ours.
struct HttpServer::Library {
  httplib::Server server;
  std::thread thread;
};

HttpServer::HttpServer(std::shared_ptr<ApiState> state)
    : state_(std::move(state)), library_(std::make_unique<Library>()) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() {
  if (!library_->thread.joinable()) return;
  library_->server.stop();
  library_->thread.join();
}

void HttpServer::add_routes() {
  httplib::Server& server = library_->server;
  server.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics_text(*state_), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  server.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const bool ready = ready_.load();
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ready\n" : "not ready\n", "text/plain");
  });
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(std::shared_ptr<ApiState> state,
                                                      const ListenAddress& address) {
  if (address.unix_socket) {
    return Error{Errc::invalid_argument, "HTTP cannot listen on a unix socket; write HOST:PORT"};
  }
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(state)));
  httplib::Server& server = http->library_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kBodyBytes);
  // The library's default also sets SO_REUSEPORT, with which a second broker would quietly share
  // the port with the first.
  server.set_socket_options([](socket_t socket_fd) {
    const int yes = 1;
    ::setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  http->add_routes();
  if (address.port == 0) {
    http->port_ = server.bind_to_any_port(address.host);
  } else {
    http->port_ = server.bind_to_port(address.host, address.port) ? address.port : -1;
  }
  if (http->port_ < 0) {
    return Error{Errc::unavailable, fmt::format("cannot listen on {} for HTTP: {}",
                                                address.to_string(), why_not(address))};
  }
  http->library_->thread = std::thread([&server] { server.listen_after_bind(); });
  // stop() has no effect on a server whose loop has not begun.
  while (!server.is_running()) std::this_thread::yield();
  return http;
}

}  // namespace baton
