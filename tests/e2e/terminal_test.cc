// What a person at a terminal sees: questions, colours, a view that is redrawn, cut to the screen.
// One broker for all tests.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/pty.h"

namespace baton::e2e {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h";
constexpr std::string_view kLeave = "\x1b[?1049l";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Removes escape sequences and carriage returns.
std::string plain(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {
      const auto end = text.find_first_not_of("0123456789;?", 2);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      continue;
    }
    if (text.front() != '\r') out.push_back(text.front());
    text.remove_prefix(1);
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back().push_back(c);
    }
  }
  return lines;
}

class Terminal : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    broker_ = std::make_unique<BrokerProcess>();
    ASSERT_TRUE(broker_->start()) << broker_->log();
  }
  static void TearDownTestSuite() { broker_.reset(); }

  /// A command on a terminal of its own.
  struct Session {
    Session(const std::vector<std::string>& arguments, std::uint16_t columns, std::uint16_t rows,
            const std::vector<std::string>& environment)
        : pty(columns, rows), child(options(arguments, environment, pty.path())) {}

    static ChildProcess::Options options(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& environment,
                                         const std::string& terminal) {
      std::vector<std::string> command{"/usr/bin/env", "-u", "NO_COLOR"};
      command.insert(command.end(), environment.begin(), environment.end());
      command.push_back("BATON_ADDRESS=" + broker_->address());
      command.push_back(binary());
      command.insert(command.end(), arguments.begin(), arguments.end());
      return {.command = command, .in_file = terminal, .out_file = terminal, .err_file = terminal};
    }
    bool shows(std::string_view text) {
      return eventually([&] { return has(pty.output(), text); });
    }

    Pty pty;
    ChildProcess child;
  };

  static Session start(const std::vector<std::string>& arguments, std::uint16_t columns = 80,
                       std::uint16_t rows = 24,
                       const std::vector<std::string>& environment = {"TERM=xterm"}) {
    return Session(arguments, columns, rows, environment);
  }
  /// The exit code, after `answer` was typed to the question `asked`.
  static int answer(const std::vector<std::string>& arguments, std::string_view asked,
                    std::string_view answer) {
    Session session = start(arguments);
    EXPECT_TRUE(session.shows(asked)) << session.pty.output();
    session.pty.type(answer);
    return session.child.wait(seconds{20}).value_or(-1);
  }

  static std::unique_ptr<BrokerProcess> broker_;
};

std::unique_ptr<BrokerProcess> Terminal::broker_;

struct Destroyer {
  std::vector<std::string> make;
  std::vector<std::string> destroy;
  std::string question;
};

TEST_F(Terminal, WhatDestroysAsksFirst) {
  ASSERT_EQ(broker_->cli({"stream", "create", "grouped"}).exit_code, 0);
  const std::vector<Destroyer> all{
      {{"queue", "create", "q"}, {"queue", "rm", "q"}, "Delete queue q and its 0 messages? [y/N]"},
      {{"queue", "create", "p"}, {"queue", "purge", "p"}, "Remove 0 waiting messages of queue p?"},
      {{"stream", "create", "s"},
       {"stream", "delete", "s"},
       "Delete stream s, its groups and its 0 "
       "records?"},
      {{"kv", "bucket", "create", "b"},
       {"kv", "bucket", "rm", "b"},
       "Delete bucket b and its 0 "
       "keys?"},
  };
  for (const Destroyer& each : all) {
    ASSERT_EQ(broker_->cli(each.make).exit_code, 0);
    EXPECT_EQ(answer(each.destroy, each.question, "\n"), 1) << each.question;
    EXPECT_EQ(answer(each.destroy, each.question, "y\n"), 0) << each.question;
  }
  EXPECT_EQ(broker_->cli({"queue", "describe", "q"}).exit_code, 3);
  EXPECT_EQ(broker_->cli({"queue", "describe", "p"}).exit_code, 0);
  EXPECT_EQ(broker_->cli({"stream", "describe", "s"}).exit_code, 3);
  EXPECT_EQ(broker_->cli({"kv", "bucket", "describe", "b"}).exit_code, 3);
}

TEST_F(Terminal, WithYesNobodyIsAsked) {
  ASSERT_EQ(broker_->cli({"queue", "create", "q"}).exit_code, 0);
  Session session = start({"queue", "delete", "q", "--yes"});
  EXPECT_EQ(session.child.wait(seconds{20}), 0);
  EXPECT_FALSE(has(session.pty.output(), "[y/N]"));
  // A missing object is reported before anything is asked.
  Session gone = start({"queue", "delete", "q"});
  EXPECT_EQ(gone.child.wait(seconds{20}), 3);
  EXPECT_FALSE(has(gone.pty.output(), "[y/N]"));
}

TEST_F(Terminal, BytesThatAreNotTextDoNotReachIt) {
  ASSERT_EQ(broker_->cli({"kv", "bucket", "create", "b"}).exit_code, 0);
  ASSERT_EQ(broker_->cli({"kv", "put", "b", "k", "-"}, "\x1b[2Jboo").exit_code, 0);
  Session session = start({"kv", "get", "b", "k"});
  EXPECT_EQ(session.child.wait(seconds{20}), 0);
  EXPECT_TRUE(session.shows("\\x1b[2Jboo")) << session.pty.output();
  EXPECT_EQ(broker_->cli({"kv", "get", "b", "k"}).out, "\x1b[2Jboo\n");
}

TEST_F(Terminal, HelpIsWrappedToItsWidth) {
  Session session = start({"worker", "run", "--help"}, 60);
  EXPECT_EQ(session.child.wait(seconds{20}), 0);
  ASSERT_TRUE(session.shows("Example:"));
  for (const std::string& line : lines_of(plain(session.pty.output()))) {
    if (line == "Example:") break;
    EXPECT_LE(line.size(), 60U) << line;
  }
}

TEST_F(Terminal, AViewThatIsDrawnAgainFitsTheScreenAndLeavesNothingBehind) {
  const TempFolder folder;
  ChildProcess worker({.command = {binary(), "worker", "run", "--group", "wide", "--partitions",
                                   "40", "--id", "w1"},
                       .out_file = folder / "out",
                       .environment = {"BATON_ADDRESS=" + broker_->address()}});
  ASSERT_TRUE(
      eventually([&] { return has(read_file(folder / "out"), "event=acquired partition=39 "); }));
  Session session = start({"worker", "status", "--group", "wide", "--watch"}, 60, 12);
  ASSERT_TRUE(session.shows("more lines do not fit on the screen")) << session.pty.output();
  session.child.signal(SIGINT);
  EXPECT_EQ(session.child.wait(seconds{20}), 0);
  ASSERT_TRUE(session.shows(kLeave));
  const std::string all = session.pty.output();
  EXPECT_TRUE(all.starts_with(kEnter)) << all;
  EXPECT_TRUE(all.ends_with(kLeave)) << all;
  // One frame: from one jump to the corner to the next.
  const auto begin = all.find("\x1b[H");
  const std::vector<std::string> frame =
      lines_of(plain(all.substr(begin, all.find("\x1b[H", begin + 1) - begin)));
  EXPECT_EQ(frame.size(), 12U);
  for (const std::string& line : frame) EXPECT_LE(line.size(), 60U) << line;
  EXPECT_TRUE(has(frame.at(0), "group wide")) << frame.at(0);

  worker.kill();
  Session alarmed = start({"worker", "status", "--group", "wide", "--watch"}, 60, 12);
  ASSERT_TRUE(alarmed.shows("\x1b[1;31m!! w1 ")) << alarmed.pty.output();
  alarmed.child.signal(SIGINT);
  EXPECT_EQ(alarmed.child.wait(seconds{20}), 0);
}

TEST_F(Terminal, StatesHaveColoursUnlessNobodyWantsThem) {
  ASSERT_EQ(broker_->cli({"stream", "create", "late"}).exit_code, 0);
  ASSERT_EQ(broker_->cli({"stream", "append", "late", "x", "--count", "20"}).exit_code, 0);
  ASSERT_EQ(
      broker_->cli({"stream", "subscribe", "late", "--group", "g", "--from", "first", "--max", "1"})
          .exit_code,
      0);
  const std::vector<std::string> list{"group", "list", "late"};
  Session coloured = start(list);
  EXPECT_EQ(coloured.child.wait(seconds{20}), 0);
  EXPECT_TRUE(coloured.shows("\x1b[1;31m!! late / g has no consumer and is 19 records behind"))
      << coloured.pty.output();
  for (const char* variable : {"NO_COLOR=1", "TERM=dumb"}) {
    Session grey = start(list, 80, 24, {"TERM=xterm", variable});
    EXPECT_EQ(grey.child.wait(seconds{20}), 0);
    EXPECT_TRUE(grey.shows("!! late / g"));
    EXPECT_FALSE(has(grey.pty.output(), "\x1b")) << grey.pty.output();
  }
  EXPECT_FALSE(has(broker_->cli(list).out, "\x1b"));
}

TEST_F(Terminal, WhatWasHeldIsSaidToBeReleased) {
  ASSERT_EQ(broker_->cli({"queue", "create", "held"}).exit_code, 0);
  ASSERT_EQ(broker_->cli({"queue", "send", "held", "x"}).exit_code, 0);
  Session session = start({"queue", "lease", "held", "--hold"});
  ASSERT_TRUE(session.shows("holding 1 message until interrupted")) << session.pty.output();
  session.child.signal(SIGINT);
  EXPECT_EQ(session.child.wait(seconds{20}), 0);
  EXPECT_TRUE(session.shows("released 1 message")) << session.pty.output();
}

}  // namespace
}  // namespace baton::e2e
