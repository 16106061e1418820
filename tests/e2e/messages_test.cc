// What the command line says to mistakes and edge cases of a new user: the text and the exit code.
// One broker for all tests.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

class Messages : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    broker_ = std::make_unique<BrokerProcess>();
    ASSERT_TRUE(broker_->start()) << broker_->log();
    for (const auto& command :
         std::vector<std::vector<std::string>>{{"queue", "create", "orders"},
                                               {"queue", "send", "orders", "a message"},
                                               {"stream", "create", "events", "--partitions", "3"},
                                               {"kv", "bucket", "create", "settings"},
                                               {"kv", "put", "settings", "colour", "blue"}}) {
      const CommandResult made = broker_->cli(command);
      ASSERT_EQ(made.exit_code, 0) << made.err;
    }
  }
  static void TearDownTestSuite() { broker_.reset(); }

  /// Standard error is exactly `err`, and the exit code `code`.
  static void expect_failure(const std::vector<std::string>& arguments, int code,
                             const std::string& err) {
    const CommandResult result = broker_->cli(arguments);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(result.err, err);
  }
  static void expect_output(const std::vector<std::string>& arguments, const std::string& out) {
    const CommandResult result = broker_->cli(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, out);
  }

  static std::unique_ptr<BrokerProcess> broker_;
};

std::unique_ptr<BrokerProcess> Messages::broker_;

// Without a terminal nobody is asked: deletes and purge alike.
TEST_F(Messages, AScriptIsNotAskedBeforeItDeletes) {
  expect_output({"queue", "create", "gone"}, "created queue gone\n");
  expect_output({"queue", "send", "gone", "x", "--quiet"}, "");
  expect_output({"queue", "purge", "gone"}, "purged 1 message\n");
  expect_output({"queue", "rm", "gone"}, "deleted queue gone\n");
  expect_output({"stream", "create", "gone"}, "created stream gone with 1 partition\n");
  expect_output({"stream", "delete", "gone"}, "deleted stream gone\n");
  expect_output({"kv", "bucket", "create", "gone"}, "created bucket gone\n");
  expect_output({"kv", "bucket", "delete", "gone", "--yes"}, "deleted bucket gone\n");
}

TEST_F(Messages, WhatExistsAlreadyIsNotSaidToBeCreated) {
  expect_output({"queue", "create", "orders"},
                "queue orders exists already, with these settings\n");
  expect_output({"stream", "create", "events", "--partitions", "3"},
                "stream events exists already, with these settings\n");
  expect_output({"kv", "bucket", "create", "settings"},
                "bucket settings exists already, with these settings, at revision 1\n");
  EXPECT_EQ(broker_->cli({"queue", "create", "orders", "--attempts-max", "3"}).exit_code, 4);
}

TEST_F(Messages, AGroupMustHaveAName) {
  expect_failure({"stream", "subscribe", "events", "--group", "", "--max", "1"}, 2,
                 "baton: stream subscribe events: --group is empty\n");
}

// Three partitions fail for one reason, which is reported once.
TEST_F(Messages, AReasonIsToldOnce) {
  expect_failure({"stream", "subscribe", "events", "--group", "ü"}, 2,
                 "baton: stream subscribe events: --group may hold only letters, digits and . _ - "
                 "/ :\n");
  const CommandResult beyond = broker_->cli(
      {"stream", "subscribe", "events", "--group", "far", "--from", "9999", "--wait", "5s"});
  EXPECT_EQ(beyond.exit_code, 3) << beyond.err;
  EXPECT_EQ(std::ranges::count(beyond.err, '\n'), 1) << beyond.err;
}

TEST_F(Messages, AWorkerWithoutItsProgramDoesNotJoin) {
  const std::string store = "baton://" + broker_->address();
  const auto worker = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {binary(), "worker"});
    return run_command(std::move(words));
  };
  const CommandResult run = worker({"run", "--store", store, "--group", "none", "--partitions", "2",
                                    "--", "./does-not-exist", "{partition}"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err,
            "baton: worker run none: cannot run the program './does-not-exist': No such file or "
            "directory\n");
  EXPECT_EQ(worker({"status", "--store", store, "--group", "none"}).exit_code, 3);
}

TEST_F(Messages, AWatchCannotBeginInTheFuture) {
  expect_failure({"kv", "watch", "settings", "--after", "99999", "--wait", "1s"}, 2,
                 "baton: kv watch settings: --after is 99999, ahead of the bucket, which is at "
                 "revision 1\n");
}

TEST_F(Messages, ALimitIsNamedWithItsFlagAndUnits) {
  expect_failure({"queue", "create", "big", "--payload-max", "1GB"}, 2,
                 "baton: queue create: --payload-max: '1GB' is not a size from 1 B to 16 MiB; see "
                 "'baton queue create --help'\n");
  expect_failure({"kv", "bucket", "create", "big", "--value-max", "1GB"}, 2,
                 "baton: kv bucket create: --value-max: '1GB' is not a size from 1 B to 16 MiB; "
                 "see 'baton kv bucket create --help'\n");
}

TEST_F(Messages, AnUpdateWithoutASettingIsRefused) {
  expect_failure({"queue", "update", "orders"}, 2,
                 "baton: queue update orders: nothing to change: give at least one setting\n");
  expect_failure({"stream", "update", "events"}, 2,
                 "baton: stream update events: nothing to change: give at least one setting\n");
}

TEST_F(Messages, ANameIsNoPath) {
  const std::string why = " has a part '..' between slashes; a part may not be empty, '.' or '..'";
  expect_failure({"queue", "create", "../etc"}, 2,
                 "baton: queue create ../etc: queue name" + why + " (invalid_argument)\n");
  expect_failure({"stream", "create", "../etc"}, 2,
                 "baton: stream create ../etc: stream name" + why + " (invalid_argument)\n");
  expect_failure({"kv", "bucket", "create", "../etc"}, 2,
                 "baton: kv bucket create ../etc: bucket" + why + " (invalid_argument)\n");
  expect_output({"queue", "create", "eu/orders"}, "created queue eu/orders\n");
}

TEST_F(Messages, WhatIsNotRedrivenIsExplained) {
  expect_failure({"queue", "redrive", "orders"}, 7,
                 "baton: queue redrive orders: skipped 1 message: the queue that they came from "
                 "does not exist, or they are no dead letters; give --to QUEUE\n");
  expect_failure({"queue", "redrive", "orders", "--to", "nowhere"}, 3,
                 "baton: queue redrive orders: there is no queue 'nowhere' (queue_not_found)\n");
}

// Shows since when the seat is empty, and why: the consumer left.
TEST_F(Messages, AnEmptySeatSaysSinceWhenAndWhy) {
  expect_output({"stream", "create", "seats"}, "created stream seats with 1 partition\n");
  EXPECT_EQ(broker_->cli({"stream", "append", "seats", "x", "--count", "20"}).exit_code, 0);
  EXPECT_EQ(broker_
                ->cli({"stream", "subscribe", "seats", "--group", "g", "--single-active", "--from",
                       "first", "--max", "1"})
                .exit_code,
            0);
  const CommandResult described = broker_->cli({"group", "describe", "seats", "g"});
  EXPECT_NE(described.out.find("the former one unsubscribed"), std::string::npos) << described.out;
  EXPECT_EQ(described.out.find("the first consumer registered"), std::string::npos);
  EXPECT_NE(described.out.find("!! seats / g has no consumer and is 19 records behind"),
            std::string::npos)
      << described.out;
}

TEST_F(Messages, AnOffsetThatIsNotThereIsOneOfAPartition) {
  expect_failure(
      {"stream", "read", "events", "--partition", "1", "--from", "999"}, 3,
      "baton: stream read events: partition 1: offset 999; the first is 0, the next is 0 "
      "(offset_out_of_range)\n");
}

TEST_F(Messages, WaitingInVainIsSaidInOneWay) {
  expect_failure({"queue", "lease", "empty", "--wait", "1s"}, 3,
                 "baton: queue lease empty: there is no queue 'empty' (queue_not_found)\n");
  expect_output({"queue", "create", "empty"}, "created queue empty\n");
  expect_failure({"queue", "lease", "empty", "--wait", "100ms"}, 8,
                 "baton: queue lease empty: no message came within 100ms\n");
  expect_failure({"stream", "subscribe", "events", "--group", "vain", "--wait", "100ms"}, 8,
                 "baton: stream subscribe events: no record came within 100ms\n");
  expect_failure({"kv", "watch", "settings", "--after", "1", "--wait", "100ms"}, 8,
                 "baton: kv watch settings: no change came within 100ms\n");
}

}  // namespace
}  // namespace baton::e2e
