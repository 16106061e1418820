#include "cli/pipeline/pipeline_progress.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

Json running() {
  return Json{{"name", "orders"},
              {"state", "running"},
              {"pid", 4711},
              {"source", {{"state", "ok"}}},
              {"sink", {{"state", "ok"}}},
              {"dead_letters", {{"state", "ok"}}},
              {"rate", 99.6},
              {"lag", 7},
              {"counters", {{"applied", 5000}, {"dead_letters", 1}}},
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
}

std::string first_line(const Json& status) {
  const std::string text = status_text(status);
  return text.substr(0, text.find('\n'));
}

// Everything that `--json` shows of a partition, and the errors that occurred.
TEST(PipelineStatus, IsTold) {
  EXPECT_EQ(status_text(running()),
            "orders: sink ok\n"
            "  100 records/s, lag 7\n"
            "  received                         0\n"
            "  applied                      5 000\n"
            "  duplicates                       0\n"
            "  dead letters                     1\n"
            "  without a value                  0\n"
            "  in the sink before               0\n"
            "  to come again                    0\n"
            "  batches                          0\n"
            "  tried again                      0\n"
            "  cut in two                       0\n"
            "  outages of the sink              0\n"
            "  errors of the sink: 3 outage, 1 retry\n"
            "PARTITION  EPOCH  COMMITTED  CONTIGUOUS  DONE  GAPS  IN FLIGHT  LAG  BEHIND\n"
            "        0      2         10          11    14     3          4  7    2.2 s\n"
            "        1      1          0           0     0     0          0  ?    -");
  EXPECT_EQ(status_text(Json("?")), "the answer cannot be read");
}

// "closed" and "open" would be read as their opposites.
TEST(PipelineStatus, SaysWhatIsOutForHowLongAndWhatToDo) {
  Json status = running();
  status["sink"] = {{"state", "out"}, {"seconds", 12.3}, {"why", "gone"}};
  EXPECT_EQ(first_line(status), "orders: sink OUT for 12 s: gone");
  status["source"] = {{"state", "out"}, {"seconds", 3.0}, {"why", "refused"}};
  EXPECT_EQ(first_line(status), "orders: source OUT for 3 s: refused; sink OUT for 12 s: gone");
  status["state"] = "halted";
  status["sink"]["state"] = "halted";
  EXPECT_TRUE(status_text(status).starts_with(
      "orders: HALTED for 12 s: gone\n  mend that, then go on with: kill -HUP 4711\n"))
      << status_text(status);
  EXPECT_EQ(
      status_text(Json{{"name", "orders"},
                       {"state", "starting"},
                       {"dead_letters", {{"state", "out"}, {"seconds", 4.0}, {"why", "no"}}}}),
      "orders: starting; dead letters OUT for 4 s: no");
}

TEST(PipelineProgress, IsOneLineWithTheStateFirst) {
  pipeline::Counters counters;
  counters.applied = 12'345;
  counters.dead_letters = 1;
  pipeline::EngineStatus status;
  EXPECT_EQ(progress_text(counters, status, 400.4),
            "sink ok; 400/s, lag 0; 12 345 applied, 0 duplicates, 1 dead letter");
  status.gate.state = flow::Breaker::State::open;
  status.gate.outage = std::chrono::seconds(12);
  EXPECT_TRUE(progress_text(counters, status, 0).starts_with("sink OUT for 12 s; 0/s, "));
  status.gate.of_letters = true;
  EXPECT_TRUE(progress_text(counters, status, 0).starts_with("dead letters OUT for 12 s; "));
  status.source = pipeline::Outage{.why = "gone", .time = std::chrono::seconds(3)};
  EXPECT_TRUE(progress_text(counters, status, 0).starts_with("source OUT for 3 s; "));
  status.gate.state = flow::Breaker::State::halted;
  EXPECT_TRUE(progress_text(counters, status, 0).starts_with("HALTED, kill -HUP "));
}

}  // namespace
}  // namespace baton::cli
