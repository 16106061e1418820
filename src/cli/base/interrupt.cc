#include "cli/base/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>

namespace baton::cli {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

// timeout(1) and some supervisors signal the process and its group: that is one request, not two.
constexpr Nanoseconds kOneWish = std::chrono::seconds(1);

std::atomic<std::int64_t> g_interrupted_ns{0};   // NOLINT: a signal handler has nothing else.
volatile std::sig_atomic_t g_reload = 0;         // NOLINT: likewise.
std::atomic<const char*> g_last_words{nullptr};  // NOLINT: likewise.
std::atomic<std::size_t> g_last_words_size{0};   // NOLINT: likewise.

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

void on_signal(int signal) {
  const std::int64_t now = Nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::int64_t first = 0;
  if (g_interrupted_ns.compare_exchange_strong(first, now)) return;
  if (Nanoseconds(now - first) < kOneWish) return;
  // A user who interrupts twice does not want to wait for the broker.
  if (const char* const words = g_last_words; words != nullptr) {
    static_cast<void>(::write(STDOUT_FILENO, words, g_last_words_size) == 0);
  }
  std::signal(signal, SIG_DFL);  // NOLINT(cert-err33-c)
  std::raise(signal);            // NOLINT(cert-err33-c)
}

void on_hang_up(int /*signal*/) { g_reload = 1; }

}  // namespace

void watch_for_interrupt() {
  std::signal(SIGINT, on_signal);   // NOLINT(cert-err33-c)
  std::signal(SIGTERM, on_signal);  // NOLINT(cert-err33-c)
}

bool is_interrupted() { return g_interrupted_ns != 0; }

void set_last_words(std::string_view text) {
  g_last_words = nullptr;
  g_last_words_size = text.size();
  if (!text.empty()) g_last_words = text.data();
}

void watch_for_reload() { std::signal(SIGHUP, on_hang_up); }  // NOLINT(cert-err33-c)

bool take_reload() {
  const bool asked = g_reload != 0;
  g_reload = 0;
  return asked;
}

}  // namespace baton::cli
