// exactly_once_effect without a key: only the marks prevent duplicate rows.
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "pipeline/sqlite_pipeline.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

constexpr orders::OrderMix kNoTrouble{.invalid = 0, .broken = 0, .duplicate = 0};

class Once : public SqlitePipeline {
 protected:
  static PipelineFolder::Settings once(PipelineFolder::Settings settings = {}) {
    settings["delivery"] = "exactly_once_effect";
    settings["batch.records"] = "10";
    return settings;
  }
};

// A kill leaves the lanes at different marks; a pipeline that drains before it has passed the
// highest one must leave it unchanged.
TEST_F(Once, KilledAndDrainedInTurn) {
  const PipelineFolder folder(broker_, once());
  folder.remove_key();
  for (std::uint64_t life = 1; life <= 6; ++life) {
    send(2'000, life, kNoTrouble);
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() > 200; }));
    pipeline.kill();
    ASSERT_TRUE(pipeline.start());
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  }
  PipelineProcess last(folder);
  ASSERT_TRUE(last.start());
  EXPECT_TRUE(eventually(
      [&] { return read_sqlite(folder.database()).rows.size() >= inventory_.entries().size(); },
      seconds{60}))
      << last.log();
  EXPECT_EQ(last.terminate(), 0) << last.log();
  expect_everything_ended(inventory_, outcome(folder));
}

// Both have the partitions, as their groups see it; the sink has one owner. The other pipeline ends
// and says so, instead of standing still silently.
TEST_F(Once, OneWhoIsFencedForGoodEnds) {
  const PipelineFolder folder(broker_, once());
  folder.remove_key();
  const PipelineFolder rival(
      broker_, once({{"source.group", "others"}, {"sink.url", "sqlite:" + folder.database()}}));
  rival.remove_key();
  PipelineProcess first(folder);
  ASSERT_TRUE(first.start());
  send(1'000, 1, kNoTrouble);
  EXPECT_TRUE(eventually([&] { return first.ended() == 1'000; }));
  PipelineProcess second(rival);
  ASSERT_TRUE(second.start());
  EXPECT_TRUE(eventually([&] { return second.status()["partitions"].size() == 4; }))
      << second.log();
  send(1'000, 2, kNoTrouble);
  EXPECT_EQ(first.wait(seconds{40}), 75) << first.log();
  EXPECT_NE(first.log().find("holds another for the owner"), std::string::npos) << first.log();
  EXPECT_TRUE(eventually([&] { return second.ended() == 1'000; })) << second.log();
  EXPECT_EQ(second.terminate(), 0) << second.log();
  expect_everything_ended(inventory_, outcome(folder));
}

// Marks that are older than what the group has committed, and a sink that cannot answer at once.
TEST_F(Once, ABackupThatIsLockedIsBroughtUpToDate) {
  const PipelineFolder folder(broker_, once());
  folder.remove_key();
  const auto run = [&] {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1'000; })) << pipeline.log();
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  };
  send(1'000, 1, kNoTrouble);
  run();
  const std::string backup = e2e::read_file(folder.database());
  send(1'000, 2, kNoTrouble);
  run();
  e2e::write_file(folder.database(), backup);
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(folder.database().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; }, seconds{30}));
  std::this_thread::sleep_for(seconds{6});  // Longer than the stream's source waits.
  sqlite3_close_v2(holder);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1'000; }, seconds{30})) << pipeline.log();
  send(500, 3, kNoTrouble);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1'500; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_everything_ended(inventory_, outcome(folder));
}

// It has the name of the old one, and other records at its offsets.
TEST_F(Once, AStreamThatIsMadeAnewIsReadFromItsBeginning) {
  const PipelineFolder folder(broker_, once());
  folder.remove_key();
  for (std::uint64_t life = 1; life <= 2; ++life) {
    if (life > 1) {
      delete_stream();
      create_stream(4);
    }
    send(1'000, life, kNoTrouble);
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1'000; })) << pipeline.log();
    EXPECT_EQ(pipeline.counter("replayed"), 0);
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  }
  EXPECT_EQ(read_sqlite(folder.database()).rows.size(), 2'000U);
}

}  // namespace
}  // namespace baton::pipeline
