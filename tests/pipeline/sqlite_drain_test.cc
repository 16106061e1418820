// What a pipeline leaves behind when it ends, and how its next life continues.
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "pipeline/sqlite_pipeline.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using e2e::Clock;
using e2e::eventually;
using e2e::seconds;
using orders::OrderFate;

class SqliteDrain : public SqlitePipeline {
 protected:
  /// Processes the rest in a new life.
  void expect_the_rest(const PipelineFolder& folder) {
    PipelineProcess last(folder);
    ASSERT_TRUE(last.start());
    EXPECT_TRUE(eventually([&] {
      return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
    })) << last.log();
    EXPECT_TRUE(eventually([&] { return last.status()["window"]["records"] == 0; }));
    EXPECT_EQ(last.terminate(), 0) << last.log();
    expect_everything_ended(inventory_, outcome(folder));
  }
};

// There is nothing to wait for, so the drain does not wait.
TEST_F(SqliteDrain, ASinkThatIsOutIsNotWaitedFor) {
  const PipelineFolder folder(broker_, {{"drain", "60s"}});
  send(500);
  {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
    fs::rename(folder.database(), folder.database() + ".aside");
    send(1000, 2);
    EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
    const auto begin = Clock::now();
    EXPECT_EQ(pipeline.terminate(), 7) << pipeline.log();
    EXPECT_LT(Clock::now() - begin, seconds{10});
  }
  fs::rename(folder.database() + ".aside", folder.database());
  expect_nothing_skipped(inventory_, outcome(folder), stored_offsets(broker_, "orders", "orders"));
  expect_the_rest(folder);
}

// It may still answer: wait for as long as `drain` says, for all partitions together.
TEST_F(SqliteDrain, ASinkThatIsLockedIsWaitedForOnce) {
  const PipelineFolder folder(broker_,
                              {{"drain", "2s"}, {"lanes", "2"}, {"retry.attempts", "1000"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  send(1000);
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(folder.database().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] {
      const nlohmann::json status = pipeline.status();
      return status.is_object() && status["counters"]["received"] == 1000;
    })) << pipeline.log();
    const auto begin = Clock::now();
    EXPECT_EQ(pipeline.terminate(), 7) << pipeline.log();
    EXPECT_GT(Clock::now() - begin, seconds{2});
    EXPECT_LT(Clock::now() - begin, seconds{7});  // And the one statement in progress.
  }
  sqlite3_close_v2(holder);
  EXPECT_TRUE(read_sqlite(folder.database()).rows.empty());
  expect_the_rest(folder);
}

/// Another setting, and the error it gives.
using Layout = std::pair<std::pair<std::string, std::string>, std::string>;
class SqliteLayout : public SqliteDrain, public ::testing::WithParamInterface<Layout> {};

// Marks are per lane, and mean nothing when records are divided in another way.
TEST_P(SqliteLayout, ChangesAfterADrainOnly) {
  const auto& [setting, complaint] = GetParam();
  PipelineFolder folder(broker_, {{"batch.records", "10"}, {"delivery", "exactly_once_effect"}});
  send(3000);
  {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() > 200; }));
    pipeline.kill();
  }
  folder.settings().insert(setting);
  PipelineProcess refused(folder);
  refused.launch();
  EXPECT_EQ(refused.wait(seconds{30}), 2) << refused.log();
  EXPECT_NE(refused.log().find(complaint), std::string::npos) << refused.log();
  const auto checked = folder.check();
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_NE(checked.err.find(complaint), std::string::npos) << checked.err;
  folder.settings().erase(setting.first);
  send(1000, 2);  // The first one may have processed all.
  PipelineProcess drains(folder);
  ASSERT_TRUE(drains.start());
  EXPECT_TRUE(eventually([&] { return drains.ended() > 200; })) << drains.log();
  EXPECT_EQ(drains.terminate(), 0) << drains.log();
  folder.settings().insert(setting);
  expect_the_rest(folder);
}
INSTANTIATE_TEST_SUITE_P(
    Of, SqliteLayout,
    ::testing::Values(
        Layout{{"lanes", "7"}, "written with 4 lanes and not drained; it cannot go on with 7:"},
        Layout{{"order", "partition"},
               "written with 4 lanes and not drained; it cannot go on with 4 by partition:"}),
    [](const auto& layout) { return layout.param.first.first; });

}  // namespace
}  // namespace baton::pipeline
