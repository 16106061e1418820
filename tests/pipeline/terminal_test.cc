// What a person at a small terminal sees of a pipeline: one line of progress, a status in place,
// dead letters cut to the width.
#include <csignal>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <baton/broker.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/free_port.h"
#include "e2e/pty.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

constexpr std::uint16_t kColumns = 50;
constexpr std::uint16_t kRows = 12;

/// The text between line ends and redraws, without escape sequences.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    if (text.starts_with("\x1b[")) {
      const auto end = text.find_first_not_of("0123456789;?", 2);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      continue;
    }
    if (text.front() == '\n' || text.front() == '\r') {
      lines.emplace_back();
    } else {
      lines.back().push_back(text.front());
    }
    text.remove_prefix(1);
  }
  return lines;
}

class PipelineTerminal : public ::testing::Test {
 protected:
  /// A command on a terminal of its own.
  struct Session {
    Session(const PipelineFolder& folder, std::vector<std::string> arguments)
        : pty(kColumns, kRows) {
      std::vector<std::string> command{e2e::binary(), "pipeline"};
      command.insert(command.end(), arguments.begin(), arguments.end());
      child = std::make_unique<e2e::ChildProcess>(
          e2e::ChildProcess::Options{.command = command,
                                     .out_file = pty.path(),
                                     .err_file = pty.path(),
                                     .environment = folder.environment()});
    }
    [[nodiscard]] bool shows(const std::string& text) const {
      return pty.output().find(text) != std::string::npos;
    }
    e2e::Pty pty;
    std::unique_ptr<e2e::ChildProcess> child;
  };

  void SetUp() override {
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream("orders").create(2).has_value());
    const auto made =
        e2e::run_command({e2e::binary(), "pipeline", "generate", "orders", "--count", "2000",
                          "--broken", "1%", "--to", "baton://" + broker_.address() + "/orders"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  e2e::BrokerProcess broker_;
};

TEST_F(PipelineTerminal, IsNarrow) {
  const std::string http = "127.0.0.1:" + std::to_string(e2e::free_port());
  const PipelineFolder folder(broker_, {{"http", http}});
  Session run(folder, {"run", folder.config()});
  ASSERT_TRUE(eventually([&] { return run.shows("sink ok; "); }, seconds{30})) << run.pty.output();
  const auto applied = [&] { return run.shows(" lag 0; 1 "); };
  EXPECT_TRUE(eventually(applied, seconds{30})) << run.pty.output();
  for (const std::string& line : lines_of(run.pty.output())) {
    if (!line.starts_with("sink ok; ")) continue;
    EXPECT_LT(line.size(), kColumns) << line;
  }

  Session status(folder, {"status", "orders", "--watch", "--http", http});
  EXPECT_TRUE(eventually([&] { return status.shows("more line"); }, seconds{10}))
      << status.pty.output();
  EXPECT_TRUE(status.shows("\x1b[?1049h"));  // The alternate screen: nothing piles up.
  for (const std::string& line : lines_of(status.pty.output())) {
    EXPECT_LE(line.size(), kColumns) << line;
  }
  status.child->signal(SIGINT);
  EXPECT_EQ(status.child->wait(seconds{10}), 0);

  Session letters(folder, {"dlq", "ls", "orders", "--address", broker_.address()});
  EXPECT_EQ(letters.child->wait(seconds{10}), 0) << letters.pty.output();
  // What a program wrote is read after its end, by another thread.
  EXPECT_TRUE(eventually([&] { return letters.shows("CLASS"); }, seconds{10}))
      << letters.pty.output();
  for (const std::string& line : lines_of(letters.pty.output())) {
    EXPECT_LE(line.size(), kColumns) << line;
  }

  run.child->signal(SIGINT);
  EXPECT_EQ(run.child->wait(seconds{20}), 0) << run.pty.output();
  EXPECT_TRUE(eventually([&] { return run.shows("draining: "); }, seconds{10})) << run.pty.output();
}

// In the form of the broker's and the workers' logs.
TEST_F(PipelineTerminal, LinesOfTheLogHaveATimeALevelAndAnEvent) {
  const PipelineFolder folder(broker_);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  const std::regex form(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning) event=pipeline text=.+)");
  for (const std::string& line : lines_of(pipeline.log())) {
    EXPECT_TRUE(line.empty() || std::regex_match(line, form)) << line;
  }
}

// For programs: one object a line, also on standard error.
TEST_F(PipelineTerminal, OfAProgramIsJson) {
  const PipelineFolder folder(broker_);
  const std::string log = folder.folder() / "json";
  e2e::ChildProcess child({.command = {e2e::binary(), "pipeline", "run", folder.config(), "--json"},
                           .out_file = log + ".out",
                           .err_file = log,
                           .environment = folder.environment()});
  ASSERT_TRUE(eventually(
      [&] { return e2e::read_file(log).find("\"reading\"") != std::string::npos; }, seconds{30}))
      << e2e::read_file(log);
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(seconds{20}), 0);
  for (const std::string& line : lines_of(e2e::read_file(log))) {
    if (line.empty()) continue;
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_TRUE(object.contains("time") && object.contains("level") && object.contains("text"))
        << line;
  }
}

}  // namespace
}  // namespace baton::pipeline
