#include "worker/guardian/handler_command.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton::worker {
namespace {

using Words = std::vector<std::string>;

TEST(HandlerCommand, ReplacesPartitionAndEpochWhereverTheyStand) {
  const Words words{"./handle-{partition}", "--of={partition}/{epoch}", "{epoch}{epoch}", "plain"};

  EXPECT_EQ(expand_command(words, {.partition = 7, .epoch = 42}),
            (Words{"./handle-7", "--of=7/42", "4242", "plain"}));
}

// Handlers have braces of their own: shell functions, JSON, format strings.
TEST(HandlerCommand, LeavesOtherBracesAlone) {
  const Words words{"{}", "{Partition}", "{{partition}}", "{partition", "{\"a\":1}", "$ {epoch }",
                    ""};

  EXPECT_EQ(expand_command(words, {.partition = 3, .epoch = 1}),
            (Words{"{}", "{Partition}", "{3}", "{partition", "{\"a\":1}", "$ {epoch }", ""}));
}

// A runner may itself be a handler: its own partition must not be mistaken for ours.
TEST(HandlerCommand, TheEnvironmentNamesThisTaskAndNoOther) {
  const Words inherited{"PATH=/bin", "BATON_PARTITION=99", "BATON_PARTITIONS=x", "BATON_GROUP=old"};

  EXPECT_EQ(handler_environment(inherited, "orders", {.partition = 3, .epoch = 9}),
            (Words{"PATH=/bin", "BATON_PARTITIONS=x", "BATON_GROUP=orders", "BATON_PARTITION=3",
                   "BATON_EPOCH=9"}));
}

}  // namespace
}  // namespace baton::worker
