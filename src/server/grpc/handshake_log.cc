#include "server/grpc/handshake_log.h"

#include <chrono>
#include <mutex>
#include <string_view>

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include "base/logging/gate.h"
#include "base/logging/log.h"

namespace baton {
namespace {

constexpr std::string_view kFailed = "Handshake failed with fatal error ";
constexpr std::chrono::seconds kHandshakeLogInterval{10};

// gRPC's log has no user data.
std::mutex mutex;
ConnectionCounters* watched = nullptr;

void take_line(gpr_log_func_args* line) {
  static LogGate gate(kHandshakeLogInterval);
  const std::string_view text = line->message;
  const std::size_t at = text.find(kFailed);
  if (at == std::string_view::npos) return;
  {
    const std::lock_guard lock(mutex);
    if (watched == nullptr) return;
    watched->handshakes_failed_total.fetch_add(1, std::memory_order_relaxed);
  }
  const Instant now{
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()};
  if (const auto more = gate.pass(now)) {
    spdlog::warn("event=handshake_refused reason={} suppressed={}",
                 log_value(text.substr(at + kFailed.size())), *more);
  }
}

}  // namespace

void watch_handshakes(ConnectionCounters& counters) {
  {
    const std::lock_guard lock(mutex);
    watched = &counters;
  }
  gpr_set_log_function(&take_line);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

void stop_watching_handshakes(ConnectionCounters& counters) {
  const std::lock_guard lock(mutex);
  if (watched == &counters) watched = nullptr;
}

}  // namespace baton
