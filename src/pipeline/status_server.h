#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "engine/engine.h"

namespace baton::pipeline {

/// Shows a running pipeline: /pipelines, /metrics, /healthz.
class StatusServer {
 public:
  /// `address` is "HOST:PORT"; port 0 takes a free one.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& address,
                                                     const std::string& name, const Engine& engine);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  /// "HOST:PORT", where it listens.
  [[nodiscard]] std::string address() const;

 private:
  struct Library;
  StatusServer();

  std::unique_ptr<Library> library_;
  std::string host_;
  int port_ = 0;
};

/// Asks one: the JSON of /pipelines.
Result<std::string> ask_status(const std::string& address);

}  // namespace baton::pipeline
