#include "cli/base/interrupt.h"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

// timeout(1) signals the process and its group; a process that dies of that has not drained.
TEST(Interrupt, TwoSignalsAtOnceAreOne) {
  const auto twice_at_once = [] {
    watch_for_interrupt();
    const bool before = is_interrupted();
    for (const int signal : {SIGTERM, SIGTERM, SIGINT}) std::raise(signal);
    std::_Exit(!before && is_interrupted() ? 0 : 1);
  };
  EXPECT_EXIT(twice_at_once(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace baton::cli
