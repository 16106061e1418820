#include "cli/interrupt.h"

#include <csignal>

namespace baton::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;  // NOLINT: a signal handler has nothing else.

void on_signal(int signal) {
  g_interrupted = 1;
  // Whoever asks twice does not want to wait for the broker.
  std::signal(signal, SIG_DFL);  // NOLINT(cert-err33-c)
}

}  // namespace

void watch_for_interrupt() {
  std::signal(SIGINT, on_signal);   // NOLINT(cert-err33-c)
  std::signal(SIGTERM, on_signal);  // NOLINT(cert-err33-c)
}

bool is_interrupted() { return g_interrupted != 0; }

}  // namespace baton::cli
