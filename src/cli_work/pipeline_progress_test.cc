#include "cli_work/pipeline_progress.h"

#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

// All that `--json` knows of a partition, and of errors what there was of them.
TEST(PipelineStatus, IsTold) {
  const Json status{
      {"name", "orders"},
      {"breaker", {{"state", "open"}, {"outage_seconds", 12.3}, {"last_error", "gone"}}},
      {"rate", 99.6},
      {"lag", 7},
      {"counters", {{"applied", 5}}},
      {"errors", {{"outage", 3}, {"poison", 0}, {"retry", 1}}},
      {"partitions",
       {{{"partition", 0},
         {"epoch", 2},
         {"committed", 10},
         {"contiguous", 11},
         {"highest_done", 14},
         {"gaps", 3},
         {"in_flight", 4},
         {"lag", 7},
         {"lag_seconds", 2.25}},
        {{"partition", 1}, {"epoch", 1}, {"committed", 0}}}}};
  EXPECT_EQ(
      status_text(status),
      "orders: sink open, out for 12 s: gone\n"
      "  100 records/s, lag 7\n"
      "  applied                   5\n"
      "  errors: 3 outage, 1 retry\n"
      "  partition   0: epoch 2, committed 10, contiguous 11, highest done 14, gaps 3, in "
      "flight 4, lag 7 (2.2 s)\n"
      "  partition   1: epoch 1, committed 0, contiguous 0, highest done 0, gaps 0, in flight "
      "0, lag ?");
  EXPECT_EQ(status_text(Json("?")), "the answer cannot be read");
}

}  // namespace
}  // namespace baton::cli
