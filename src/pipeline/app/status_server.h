#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "pipeline/app/pipeline.h"

namespace baton::pipeline {

/// Shows a pipeline that runs, or waits to begin: /pipelines, /metrics, /healthz (the process
/// lives), /readyz (records come, and the sink takes them; if not, 503 and why).
class StatusServer {
 public:
  /// `address` is "HOST:PORT"; port 0 takes a free one.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& address,
                                                     const std::string& name,
                                                     const Pipeline& pipeline);
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

/// Whether nobody else listens where the config wants to; the pipeline itself, running, may.
Status check_http(const PipelineConfig& config);

/// Asks one: the JSON of /pipelines.
Result<std::string> ask_status(const std::string& address);

}  // namespace baton::pipeline
