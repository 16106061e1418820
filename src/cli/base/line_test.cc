#include "cli/base/line.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/base/command.h"
#include "cli/base/help.h"

namespace baton::cli {
namespace {

using Words = std::vector<std::string>;

/// A tree with one noun and two verbs.
class LineTest : public testing::Test {
 protected:
  LineTest() {
    app_.name("baton");
    app_.require_subcommand(1);
    CLI::App* queue = add_noun(app_, {.name = "queue", .help = "Queues.", .example = "x"});
    CLI::App* list = add_verb(
        *queue, {.name = "list", .help = "List.", .example = "x"}, flags_,
        +[](const ClientFlags&) { return ExitCode::ok; }, action_);
    list->add_option("PREFIX", prefix_, "The beginning.");
    add_client_flags(*list, *flags_);
    add_verb(
        *queue, {.name = "delete", .help = "Delete.", .example = "x"}, flags_,
        +[](const ClientFlags&) { return ExitCode::ok; }, action_);
    app_.add_subcommand("secret", "Hidden.")->group("");
  }

  [[nodiscard]] Line line(const std::vector<const char*>& words) const {
    return arrange(app_, words);
  }

  CLI::App app_;
  Action action_;
  std::shared_ptr<ClientFlags> flags_ = std::make_shared<ClientFlags>();
  std::string prefix_;
};

TEST_F(LineTest, ConnectionFlagsMayStandAnywhere) {
  const Words expected{"queue", "list", "--address", "h:1", "x"};
  EXPECT_EQ(line({"--address", "h:1", "queue", "list", "x"}).words, expected);
  EXPECT_EQ(line({"queue", "--address", "h:1", "list", "x"}).words, expected);
  EXPECT_EQ(line({"queue", "list", "--address", "h:1", "x"}).words, expected);
  EXPECT_EQ(line({"-a", "h:1", "--json", "queue", "--tls", "list"}).words,
            (Words{"queue", "list", "-a", "h:1", "--json", "--tls"}));
  EXPECT_EQ(line({"--address=h:1", "-ah:2", "queue", "list"}).words,
            (Words{"queue", "list", "--address=h:1", "-ah:2"}));
}

TEST_F(LineTest, WordsBehindTheCommandStayAsTheyAre) {
  EXPECT_EQ(line({"queue", "list", "queue", "--", "--address", "x"}).words,
            (Words{"queue", "list", "queue", "--", "--address", "x"}));
  // The value of a flag is not a command.
  EXPECT_EQ(line({"--address", "queue", "queue", "list"}).words,
            (Words{"queue", "list", "--address", "queue"}));
}

TEST_F(LineTest, AliasesAreCommands) {
  EXPECT_EQ(line({"queue", "ls"}).command->get_name(), "list");
  EXPECT_EQ(line({"queue", "rm"}).command->get_name(), "delete");
}

TEST_F(LineTest, AnUnknownCommandIsNamedWithTheNearestOne) {
  EXPECT_EQ(line({"queu", "list"}).problem, "unknown command 'queu'; did you mean 'queue'?");
  EXPECT_EQ(line({"queue", "lst"}).problem, "unknown command 'lst'; did you mean 'list'?");
  EXPECT_EQ(line({"queue", "del"}).problem, "unknown command 'del'; did you mean 'delete'?");
  EXPECT_EQ(line({"queue", "frobnicate"}).problem, "unknown command 'frobnicate'");
  EXPECT_EQ(line({"secre"}).problem, "unknown command 'secre'");
  EXPECT_EQ(line({"queue", "lst"}).command->get_name(), "queue");
}

TEST_F(LineTest, NearestForgivesAThirdOfTheLetters) {
  EXPECT_EQ(nearest("subcsribe", {"append", "subscribe"}), "subscribe");
  EXPECT_EQ(nearest("desc", {"delete", "describe"}), "describe");
  EXPECT_EQ(nearest("x", {"list", "send"}), "");
}

TEST_F(LineTest, WrongWordsAreExplainedInOurWords) {
  const auto problem_of = [this](const std::vector<const char*>& words) {
    const Line found = line(words);
    try {
      app_.parse(Words(found.words.rbegin(), found.words.rend()));
    } catch (const CLI::ParseError& problem) {
      return usage_problem(*found.command, problem);
    }
    return std::string("nothing");
  };
  EXPECT_EQ(problem_of({"queue", "list", "--adress", "x"}),
            "unknown flag '--adress'; did you mean '--address'?");
  EXPECT_EQ(problem_of({"queue", "list", "a", "b"}), "unexpected argument 'b'");
  EXPECT_EQ(problem_of({"queue", "list", "--address"}), "--address needs a value");
  EXPECT_EQ(problem_of({"queue"}), "give a command: list, delete");
  EXPECT_EQ(problem_of({}), "give a command: queue");
  EXPECT_EQ(problem_of({"queue", "list", "--timeout", "x"}).substr(0, 10), "--timeout:");
}

TEST_F(LineTest, JsonIsAskedForBeforeTheSeparatorOnly) {
  EXPECT_TRUE(wants_json(std::vector<const char*>{"-j"}));
  EXPECT_TRUE(wants_json(std::vector<const char*>{"queue", "--json", "--"}));
  EXPECT_FALSE(wants_json(std::vector<const char*>{"worker", "run", "--", "x", "--json"}));
}

TEST_F(LineTest, AHelpPageHasAllPartsInOneStyle) {
  const std::string page = help_page(*line({"queue", "list"}).command, 80);
  EXPECT_EQ(page,
            "Usage: baton queue list [PREFIX] [flags]\n\nList.\n\n"
            "Arguments:\n  PREFIX  The beginning.\n\n"
            "Flags:\n  -j, --json  Print JSON, one object per line.\n"
            "  -h, --help  Print this help message and exit\n\n"
            "Connection flags, as --address and --tls: see 'baton help connection'.\n\n"
            "Example:\n  x\n");
  const std::string narrow = connection_page(50);
  for (std::size_t at = 0; at < narrow.size();) {
    const std::size_t end = narrow.find('\n', at);
    if (narrow.compare(at, 8, "Example:") == 0) break;
    EXPECT_LE(end - at, 50U) << narrow.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace baton::cli
