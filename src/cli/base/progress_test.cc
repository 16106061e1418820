#include "cli/base/progress.h"

#include <chrono>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using std::chrono::seconds;

// Confirmed items are counted, and shown twice a second.
TEST(Progress, TellsWhatWasConfirmedNowAndThen) {
  Progress progress(true, 2'000);
  const auto began = Progress::Clock::now();
  EXPECT_EQ(progress.add(began), "");
  EXPECT_EQ(progress.add(began + seconds(1)), "2 of 2 000");
  EXPECT_EQ(progress.add(began + seconds(1)), "");
  Progress lines(true, std::nullopt);
  EXPECT_EQ(lines.add(began + seconds(5)), "1");
}

TEST(Progress, IsSilentWhereNobodyLooksOn) {
  Progress progress(false, 10);
  EXPECT_EQ(progress.add(Progress::Clock::now() + seconds(9)), "");
}

}  // namespace
}  // namespace baton::cli
