#include "pipeline/app/status_server.h"

#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "pipeline/app/config_check.h"
#include "pipeline/app/status.h"
#include "pipeline/ends/endpoint.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kThreads = 2;
constexpr int kAskSeconds = 5;

/// The library's default would silently let a second pipeline share the port.
void share_no_port(httplib::Server& server) {
  server.set_socket_options([](socket_t socket_fd) {
    const int yes = 1;
    ::setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

}  // namespace

struct StatusServer::Library {
  httplib::Server server;
  std::thread thread;
};

StatusServer::StatusServer() : library_(std::make_unique<Library>()) {}

StatusServer::~StatusServer() {
  if (!library_->thread.joinable()) return;
  library_->server.stop();
  library_->thread.join();
}

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& address,
                                                          const std::string& name,
                                                          const Pipeline& pipeline) {
  BATON_TRY(const auto place, parse_host_port(address));
  std::unique_ptr<StatusServer> result(new StatusServer());
  httplib::Server& server = result->library_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  share_no_port(server);
  server.Get("/pipelines", [name, &pipeline](const httplib::Request&, httplib::Response& response) {
    response.set_content(status_json(name, pipeline), "application/json");
  });
  server.Get("/metrics", [name, &pipeline](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics_text(name, pipeline), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  server.Get("/readyz", [&pipeline](const httplib::Request&, httplib::Response& response) {
    const std::string why = why_not_ready(pipeline);
    constexpr int kUnavailable = 503;
    if (!why.empty()) response.status = kUnavailable;
    response.set_content(why.empty() ? "ok\n" : why + "\n", "text/plain");
  });
  const auto& [host, port] = place;
  result->host_ = host;
  if (port == 0) {
    result->port_ = server.bind_to_any_port(host);
  } else {
    result->port_ = server.bind_to_port(host, port) ? port : -1;
  }
  if (result->port_ < 0) {
    return Error{
        Errc::invalid_argument,
        fmt::format("http: cannot listen on {}: is the port in use? Each pipeline on a host "
                    "needs one of its own, or off",
                    address)};
  }
  result->library_->thread = std::thread([&server] { server.listen_after_bind(); });
  while (!server.is_running()) std::this_thread::yield();
  return result;
}

std::string StatusServer::address() const { return fmt::format("{}:{}", host_, port_); }

Status check_http(const PipelineConfig& config) {
  if (config.http == "off") return {};
  BATON_TRY(const auto place, parse_host_port(config.http));
  if (place.second == 0) return {};
  httplib::Server server;
  share_no_port(server);
  if (server.bind_to_port(place.first, place.second)) return {};
  const auto status = ask_status(config.http);
  const std::string name = fmt::format("\"name\":\"{}\"", config.name);
  if (status.has_value() && status->find(name) != std::string::npos) return {};
  return wrong_at(config, "http",
                  fmt::format("cannot listen on {}: is the port in use?", config.http));
}

Result<std::string> ask_status(const std::string& address) {
  BATON_TRY(const auto place, parse_host_port(address));
  httplib::Client client(place.first, place.second);
  client.set_connection_timeout(kAskSeconds);
  client.set_read_timeout(kAskSeconds);
  const httplib::Result response = client.Get("/pipelines");
  if (!response || response->status != 200) {
    return Error{Errc::unavailable, fmt::format("no pipeline answers at {}", address)};
  }
  return response->body;
}

}  // namespace baton::pipeline
