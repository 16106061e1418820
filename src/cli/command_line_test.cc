#include "cli/command_line.h"

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "cli/base/help.h"

namespace baton::cli {
namespace {

struct Outcome {
  ExitCode code = ExitCode::ok;
  std::string out;
  std::string err;
};

Outcome run_words(std::vector<const char*> words) {
  words.insert(words.begin(), "baton");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = run(static_cast<int>(words.size()), words.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

/// Calls `visit` for each command of the tree that people may use, the root included.
void walk(const CLI::App& command, const std::function<void(const CLI::App&)>& visit) {
  std::vector<const CLI::App*> open{&command};
  while (!open.empty()) {
    const CLI::App* next = open.back();
    open.pop_back();
    visit(*next);
    for (const CLI::App* below : visible_commands(*next)) open.push_back(below);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// The words of a command behind "baton".
std::vector<std::string> words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* at = &command; at->get_parent() != nullptr; at = at->get_parent()) {
    words.insert(words.begin(), at->get_name());
  }
  return words;
}

// Phrases that help texts once had, and types of the parser.
constexpr auto kBanned = std::to_array<std::string_view>(
    {" so many",    " so long", "So many",  "So often", "so often",  "begin so",
     "for ever",    "whoever",  "Make a ",  "Measure.", "Of a file", "Output for programs",
     "no newline.", "as said",  "shut out", " TEXT",    "UINT",      " INT",
     "FLOAT",       "REQUIRED", " in ["});

TEST(Help, EveryCommandHasAPageInOneStyle) {
  CLI::App app;
  Action action;
  add_commands(app, action);
  std::size_t pages = 0;
  walk(app, [&](const CLI::App& command) {
    ++pages;
    const std::string path = command_path(command);
    const std::string page = help_page(command, 80);
    EXPECT_TRUE(page.starts_with("Usage: " + path)) << page;
    EXPECT_NE(page.find("\nExample:\n  "), std::string::npos) << path;
    // The example is one of this command.
    EXPECT_NE(page.find(path, page.find("\nExample:\n")), std::string::npos) << page;
    for (const std::string_view phrase : kBanned) {
      EXPECT_EQ(page.find(phrase), std::string::npos) << path << " says '" << phrase << "'";
    }
    for (const std::string& line : lines_of(page)) {
      EXPECT_LE(line.size(), 80U) << path << "\n" << line;
    }
    EXPECT_TRUE(command.get_description().ends_with('.')) << path;
    for (const CLI::Option* option : command.get_options()) {
      const std::string name = path + " " + option->get_name(true, true);
      EXPECT_FALSE(option->get_description().empty()) << name;
      EXPECT_TRUE(option->get_description().ends_with('.')) << name;
    }
  });
  EXPECT_GE(pages, 55U);
}

TEST(Help, EveryPageIsShownByFlagAndByCommand) {
  ::setenv("COLUMNS", "80", 1);  // NOLINT(concurrency-mt-unsafe)
  CLI::App app;
  Action action;
  add_commands(app, action);
  walk(app, [&](const CLI::App& command) {
    const std::vector<std::string> path = words_of(command);
    std::vector<const char*> by_flag;
    std::vector<const char*> by_command{"help"};
    for (const std::string& word : path) {
      by_flag.push_back(word.c_str());
      by_command.push_back(word.c_str());
    }
    by_flag.push_back("--help");
    const Outcome flag = run_words(by_flag);
    EXPECT_EQ(flag.code, ExitCode::ok) << command_path(command);
    EXPECT_EQ(flag.out, help_page(command, 80));
    EXPECT_EQ(flag.err, "");
    EXPECT_EQ(run_words(by_command).out, flag.out) << command_path(command);
  });
}

TEST(Help, TheConnectionHasAPageAndTheRootHasTheExitCodes) {
  const Outcome connection = run_words({"help", "connection"});
  EXPECT_EQ(connection.code, ExitCode::ok);
  EXPECT_NE(connection.out.find("-a, --address HOST:PORT"), std::string::npos) << connection.out;
  EXPECT_NE(connection.out.find("$BATON_ADDRESS"), std::string::npos);
  const Outcome root = run_words({"--help"});
  EXPECT_NE(root.out.find("Exit codes:"), std::string::npos);
  EXPECT_NE(root.out.find("  70 "), std::string::npos);
}

TEST(CommandLine, TheVersionIsACommandAndAFlag) {
  const Outcome flag = run_words({"--version"});
  EXPECT_EQ(flag.code, ExitCode::ok);
  EXPECT_TRUE(flag.out.starts_with("baton ")) << flag.out;
  EXPECT_EQ(run_words({"-v"}).out, flag.out);
  EXPECT_EQ(run_words({"version"}).out, flag.out);
}

struct Mistake {
  std::vector<const char*> words;
  std::string err;
};

TEST(CommandLine, AMistakeIsNamedWithTheHelpThatAnswersIt) {
  const std::vector<Mistake> mistakes{
      {{"queu", "list"},
       "baton: unknown command 'queu'; did you mean 'queue'? See 'baton --help'\n"},
      {{"queue", "lst"},
       "baton: queue: unknown command 'lst'; did you mean 'list'? See 'baton queue --help'\n"},
      {{"help", "queu"},
       "baton: unknown command 'queu'; did you mean 'queue'? See 'baton --help'\n"},
      {{"kv", "bucket", "make"},
       "baton: kv bucket: unknown command 'make'; see 'baton kv bucket --help'\n"},
      {{"queue", "send"}, "baton: queue send: QUEUE is required; see 'baton queue send --help'\n"},
      {{"queue", "send", "jobs", "x", "--cuont", "3"},
       "baton: queue send: unknown flag '--cuont'; did you mean '--count'? See 'baton queue send "
       "--help'\n"},
      {{"queue", "peek", "jobs", "--max", "0"},
       "baton: queue peek: --max: '0' is not a whole number from 1 to 1000; see 'baton queue peek "
       "--help'\n"},
      {{"pipeline", "dlq", "ls", "orders", "--limit", "0"},
       "baton: pipeline dlq ls: --limit: '0' is not a whole number from 1 to 1000; see 'baton "
       "pipeline dlq ls --help'\n"},
      {{"pipeline", "run", "c.yaml", "--workers", "1000"},
       "baton: pipeline run: --workers: '1000' is not a whole number from 1 to 256; see 'baton "
       "pipeline run --help'\n"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = run_words(mistake.words);
    EXPECT_EQ(outcome.code, ExitCode::usage) << mistake.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, mistake.err);
  }
}

TEST(CommandLine, AMistakeIsJsonWhereJsonIsAskedFor) {
  const Outcome outcome = run_words({"-j", "queu"});
  EXPECT_EQ(outcome.code, ExitCode::usage);
  EXPECT_TRUE(outcome.err.starts_with("{\"error\":")) << outcome.err;
}

// Nothing listens there: that the broker is contacted shows that the line was understood.
TEST(CommandLine, TheAddressMayStandAnywhere) {
  for (const auto& words : std::vector<std::vector<const char*>>{
           {"--address", "127.0.0.1:1", "queue", "list"},
           {"queue", "-a", "127.0.0.1:1", "ls"},
           {"queue", "list", "--address", "127.0.0.1:1", "--timeout", "2s"}}) {
    const Outcome outcome = run_words(words);
    EXPECT_EQ(outcome.code, ExitCode::unreachable) << outcome.err;
    EXPECT_NE(outcome.err.find("127.0.0.1:1"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace baton::cli
