#include "worker/guardian/guard_protocol.h"

#include <signal.h>

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton::worker {
namespace {

TEST(GuardProtocol, CommandsAreReadBackAsTheyWereWritten) {
  const std::vector<GuardCommand> commands{
      NewDeadline{{123}},
      NewDeadline{Instant::never()},
      StartHandler{{65'535, std::numeric_limits<std::uint64_t>::max()}},
      StopHandler{3, {456}},
      KillHandler{0},
      SignalHandlers{SIGHUP},
      SignalHandlers{SIGUSR2}};
  for (const GuardCommand& command : commands) {
    const auto parsed = parse_guard_command(encode(command));
    ASSERT_TRUE(parsed.has_value()) << encode(command);
    EXPECT_EQ(*parsed, command);
  }
}

TEST(GuardProtocol, ReportsAreReadBackAsTheyWereWritten) {
  const std::vector<GuardReport> reports{HandlerStarted{{1, 2}, 4711}, HandlerEnded{{1, 2}, 0},
                                         HandlerEnded{{9, 1}, 137, true}};
  for (const GuardReport& report : reports) {
    const auto parsed = parse_guard_report(encode(report));
    ASSERT_TRUE(parsed.has_value()) << encode(report);
    EXPECT_EQ(*parsed, report);
  }
}

// A guardian that does not understand its runner must not guess.
TEST(GuardProtocol, AnythingElseIsRefused) {
  for (const char* text :
       {"", " ", "start", "start 1", "start 1 2 3", "start 1 2 ", "start  1 2", "start -1 2",
        "start 65536 1", "start 1 18446744073709551616", "stop 1", "stop 1 x", "deadline -5",
        "kill 1x", "kill +1", "signal 9", "signal 15", "START 1 2", "explode 1"}) {
    EXPECT_FALSE(parse_guard_command(text).has_value()) << text;
  }
  for (const char* text : {"", "started 1 2", "started 1 2 0", "ended 1 2 256", "ended 1 2 -1",
                           "ended 1 2 3 4", "gone 1 2 3"}) {
    EXPECT_FALSE(parse_guard_report(text).has_value()) << text;
  }
  EXPECT_FALSE(parse_guard_command("kill " + std::string(200, '0') + "1").has_value());
}

}  // namespace
}  // namespace baton::worker
