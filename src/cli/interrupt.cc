#include "cli/interrupt.h"

#include <csignal>

namespace baton::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;  // NOLINT: a signal handler has nothing else.
volatile std::sig_atomic_t g_reload = 0;       // NOLINT: likewise.

void on_signal(int signal) {
  g_interrupted = 1;
  // Whoever asks twice does not want to wait for the broker.
  std::signal(signal, SIG_DFL);  // NOLINT(cert-err33-c)
}

void on_hang_up(int /*signal*/) { g_reload = 1; }

}  // namespace

void watch_for_interrupt() {
  std::signal(SIGINT, on_signal);   // NOLINT(cert-err33-c)
  std::signal(SIGTERM, on_signal);  // NOLINT(cert-err33-c)
}

bool is_interrupted() { return g_interrupted != 0; }

void watch_for_reload() { std::signal(SIGHUP, on_hang_up); }  // NOLINT(cert-err33-c)

bool take_reload() {
  const bool asked = g_reload != 0;
  g_reload = 0;
  return asked;
}

}  // namespace baton::cli
