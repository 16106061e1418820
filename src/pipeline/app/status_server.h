#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "pipeline/app/pipeline.h"

namespace baton::pipeline {

/// Serves the state of a pipeline that runs or waits to start: /pipelines, /metrics, /healthz (the
/// process lives), /readyz (records arrive, and the sink takes them; if not, 503 and the reason).
class StatusServer {
 public:
  /// `address` is "HOST:PORT"; port 0 takes a free one.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& address,
                                                     const std::string& name,
                                                     const Pipeline& pipeline);
  ~StatusServer();
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  /// "HOST:PORT" that the server listens on.
  [[nodiscard]] std::string address() const;

 private:
  struct Library;
  StatusServer();

  std::unique_ptr<Library> library_;
  std::string host_;
  int port_ = 0;
};

/// Checks that no other process listens on the config's address; the same pipeline may be running
/// there.
Status check_http(const PipelineConfig& config);

/// Asks a running pipeline for the JSON of /pipelines.
Result<std::string> ask_status(const std::string& address);

}  // namespace baton::pipeline
