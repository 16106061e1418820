#include "base/reading_files.h"

#include <gtest/gtest.h>

#include "base/assert.h"

namespace baton {
namespace {

// Damaged files are not a bug of ours: the operator is told which files, and no core is dumped.
TEST(ReadingFilesDeathTest, AnAssertionOnWhatWasReadNamesTheFiles) {
  EXPECT_EXIT(
      {
        const ReadingFiles reading("data/shard-1");
        BATON_ASSERT(1 + 1 == 3);
      },
      testing::ExitedWithCode(kExitDamaged), "data/shard-1.*1 \\+ 1 == 3");
}

TEST(ReadingFilesDeathTest, AfterwardsAnAssertionAbortsAgain) {
  EXPECT_DEATH(
      {
        {
          const ReadingFiles reading("data/shard-1");
        }
        BATON_ASSERT(1 + 1 == 3);
      },
      "assertion failed");
}

}  // namespace
}  // namespace baton
