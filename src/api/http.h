#pragma once

#include <atomic>
#include <memory>

#include "api/listen.h"
#include "api_base/api_state.h"
#include "base/result.h"

namespace baton {

/// `/metrics`, `/healthz` (the process answers) and `/readyz` (it takes work: 200, otherwise 503).
/// Runs its own few threads from start() to its destruction.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(std::shared_ptr<ApiState> state,
                                                   const ListenAddress& address);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  [[nodiscard]] int port() const { return port_; }
  void set_ready(bool ready) { ready_.store(ready); }
  /// Closes the port and joins the threads. May be called twice.
  void stop();

 private:
  struct Library;
  explicit HttpServer(std::shared_ptr<ApiState> state);
  void add_routes();

  std::shared_ptr<ApiState> state_;
  std::atomic<bool> ready_{false};
  int port_ = 0;
  std::unique_ptr<Library> library_;
};

}  // namespace baton
