// Ends a test that hangs, with its name and place, before ctest kills the whole program silently.
// Part of every program that talks to servers.

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace {

using std::chrono::seconds;

// Much longer than any test takes, also under a sanitizer.
constexpr seconds kTestMax = std::chrono::minutes{8};
constexpr seconds kLongTestMax = std::chrono::minutes{20};

std::string& running() {
  static std::string text;
  return text;
}

void on_alarm(int /*signal*/) {
  const std::string& text = running();
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  std::array<void*, 64> frames{};
  const int depth = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), depth, STDERR_FILENO);
  std::abort();
}

class Watchdog : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    running() = std::string("HANGS: ") + test.test_suite_name() + "." + test.name() + "\n";
    (void)std::signal(SIGALRM, on_alarm);
    const bool is_long = std::getenv("BATON_LONG") != nullptr;  // NOLINT(concurrency-mt-unsafe)
    ::alarm(static_cast<unsigned>((is_long ? kLongTestMax : kTestMax).count()));
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { ::alarm(0); }
};

// gtest owns it.
const bool kIsWatched = (testing::UnitTest::GetInstance()->listeners().Append(new Watchdog), true);

}  // namespace
