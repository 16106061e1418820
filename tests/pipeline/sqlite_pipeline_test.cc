// The order pipeline from a Baton stream into SQLite, with real processes, while everything around
// it fails: the final counts are the generator's.
#include "pipeline/sqlite_pipeline.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "e2e/private_disk.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using e2e::BrokerProcess;
using e2e::eventually;
using e2e::milliseconds;
using e2e::seconds;
using orders::OrderFate;

TEST_F(SqlitePipeline, EveryRecordEndsWhereItHasTo) {
  const PipelineFolder folder(broker_);
  send(5000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  EXPECT_EQ(pipeline.counter("duplicates"), inventory_.count(OrderFate::duplicate));
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_everything_ended(inventory_, outcome(folder));
  // A clean end has committed everything.
  std::int64_t committed = 0;
  for (const auto& [partition, next] : stored_offsets(broker_, "orders", "orders"))
    committed += next;
  EXPECT_EQ(committed, 5000);
}

// The headline: an outage never fills the dead letters, and nothing is skipped.
TEST_F(SqlitePipeline, ADatabaseThatGoesAwayIsWaitedFor) {
  const PipelineFolder folder(broker_, {{"window.records", "500"}, {"batch.records", "50"}});
  send(2000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  const std::uint64_t letters_before = letters();
  const std::string aside = folder.folder() / "aside";
  fs::create_directory(aside);
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string file = folder.database() + suffix;
    if (fs::exists(file)) fs::rename(file, aside + "/orders.db" + suffix);
  }
  send(3000, 2, {.invalid = 0, .broken = 0, .duplicate = 0});
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
  const std::uint64_t resident = pipeline.resident();
  send(20'000, 3, {.invalid = 0, .broken = 0, .duplicate = 0});
  std::this_thread::sleep_for(seconds{1});
  const nlohmann::json status = pipeline.status();
  EXPECT_LE(status["window"]["records"].get<int>(), 500);
  // 24 MB wait in the stream. What the connection may hold ahead is bounded too.
  EXPECT_LT(pipeline.resident(), resident + 40 * 1024) << "KiB";
  EXPECT_EQ(letters(), letters_before);
  EXPECT_FALSE(fs::exists(folder.database()));  // No empty database was created.
  for (const char* suffix : {"", "-wal", "-shm"}) {
    const std::string file = aside + "/orders.db" + suffix;
    if (fs::exists(file)) fs::rename(file, folder.database() + suffix);
  }
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  // It was a member all the time: no seat has changed.
  for (const auto& partition : pipeline.status()["partitions"]) EXPECT_EQ(partition["epoch"], 1);
  EXPECT_EQ(pipeline.terminate(), 0);
  EXPECT_EQ(letters(), letters_before);
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, ALockedDatabaseIsAnOutage) {
  const PipelineFolder folder(broker_, {{"retry.attempts", "0"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(folder.database().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  send(500);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
  EXPECT_EQ(pipeline.counter("applied"), 0U);
  sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  sqlite3_close_v2(other);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0);
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, AFullDiskIsAnOutage) {
  const PipelineFolder folder(broker_, {{"sink.url", "sqlite:disk/orders.db"}});
  const e2e::PrivateDisk disk(folder.folder() / "disk", "size=3m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  send(300);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  const std::uint64_t letters_before = letters();
  const std::string hog = folder.folder() / "disk/hog";
  e2e::write_file(hog, std::string(4 << 20, 'x'));  // Takes all free space.
  send(1000, 2, {.invalid = 0, .broken = 0, .duplicate = 0});
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
  EXPECT_EQ(letters(), letters_before);
  fs::remove(hog);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0);
  Outcome ended = read_sqlite(folder.folder() / "disk/orders.db");
  ended.letters = read_letters(broker_, "orders.dlq");
  expect_everything_ended(inventory_, ended);
}

// Every record would fail, which is not the records' fault.
TEST_F(SqlitePipeline, AMissingTableHaltsUntilAReload) {
  const PipelineFolder folder(broker_);
  send(500);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  const std::uint64_t letters_before = letters();
  ASSERT_EQ(sql(folder.database(), "ALTER TABLE items RENAME TO hidden"), "");
  send(500, 2, {.invalid = 0, .broken = 0, .duplicate = 0});
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  EXPECT_EQ(letters(), letters_before);
  ASSERT_EQ(sql(folder.database(), "ALTER TABLE hidden RENAME TO items"), "");
  pipeline.signal(SIGHUP);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0);
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, OneBadRowDoesNotTakeItsNeighboursAlong) {
  const PipelineFolder folder(broker_);
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  // A rule that the schema does not have.
  ASSERT_EQ(sql(folder.database(),
                "CREATE TRIGGER picky BEFORE INSERT ON orders WHEN NEW.sm_id % 97 = 0 BEGIN SELECT "
                "RAISE(ABORT, 'picky'); END"),
            "");
  send(3000, 1, {.invalid = 0, .broken = 0, .duplicate = 0});
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  EXPECT_EQ(pipeline.terminate(), 0);
  const Outcome ended = outcome(folder);
  EXPECT_GT(ended.letters.size(), 5U);
  EXPECT_EQ(ended.rows.size() + ended.letters.size(), 3000U);
  for (const Outcome::Row& row : ended.rows) EXPECT_FALSE(ended.letters.contains(row.place));
}

TEST_F(SqlitePipeline, AnOutageThatIsTooLongEndsWith75) {
  const PipelineFolder folder(broker_, {{"max_outage", "500ms"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  send(300);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  fs::rename(folder.database(), folder.database() + ".aside");
  send(300, 2);
  EXPECT_EQ(pipeline.wait(seconds{30}), 75) << pipeline.log();
  fs::rename(folder.database() + ".aside", folder.database());
  PipelineProcess again(folder);
  ASSERT_TRUE(again.start());
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  }));
  EXPECT_EQ(again.terminate(), 0);
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, DeadLettersThatCannotBeWrittenAreWaitedFor) {
  BrokerProcess other;
  ASSERT_TRUE(other.start());
  const PipelineFolder folder(
      broker_, {{"dead_letters.url", "baton-queue://" + other.address() + "/orders.dlq"}});
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  other.kill();
  send(1000);
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
  EXPECT_LT(pipeline.ended(), 1000U);
  Outcome meanwhile = read_sqlite(folder.database());
  expect_nothing_skipped(inventory_, meanwhile, stored_offsets(broker_, "orders", "orders"));
  ASSERT_TRUE(other.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0);
  Outcome ended = read_sqlite(folder.database());
  ended.letters = read_letters(other, "orders.dlq");
  expect_everything_ended(inventory_, ended);
}

// A deployment that makes every record poison must not flush a stream into the dead letters.
TEST_F(SqlitePipeline, AStormHaltsItLoudly) {
  const PipelineFolder folder(broker_);
  send(1000, 1, {.invalid = 1000, .broken = 0, .duplicate = 0});
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  EXPECT_LE(letters(), 100U);
  EXPECT_NE(pipeline.log().find("too many"), std::string::npos);
  pipeline.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return letters() > 100; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 7);  // Not every record was processed.
}

TEST_F(SqlitePipeline, TheBrokerGoesAndComesBack) {
  const PipelineFolder folder(broker_, {{"batch.records", "20"}});
  send(4000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() > 200; }));
  broker_.kill();
  ASSERT_TRUE(broker_.start());
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  })) << pipeline.log();
  EXPECT_TRUE(eventually([&] {
    std::int64_t committed = 0;
    for (const auto& [partition, next] : stored_offsets(broker_, "orders", "orders")) {
      committed += next;
    }
    return committed == 4000;
  })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, RecordsThatAreGoneAreNotSkippedInSilence) {
  const PipelineFolder folder(broker_, {{"delivery", "exactly_once_effect"}});
  send(100);
  {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(all_end(pipeline));
    EXPECT_EQ(pipeline.terminate(), 0);
  }
  // As if the stream had been recreated, or had dropped more than was read.
  ASSERT_EQ(sql(folder.database(), "UPDATE baton_marks SET next_offset = 1000000, done_below = 0"),
            "");
  PipelineProcess pipeline(folder);
  pipeline.launch();
  EXPECT_EQ(pipeline.wait(seconds{30}), 3) << pipeline.log();
  EXPECT_NE(pipeline.log().find("stream orders, partition "), std::string::npos) << pipeline.log();
  EXPECT_NE(pipeline.log().find("offset 1000000; the first is 0"), std::string::npos);
  EXPECT_NE(pipeline.log().find("'baton group delete orders orders'"), std::string::npos);
}

// The running pipeline still has the wrong schema: continuing would make dead letters of good
// records.
TEST_F(SqlitePipeline, AReloadDoesNotPassOverASchemaFileThatChanged) {
  delete_stream();
  create_stream(1);
  const PipelineFolder folder(broker_, {{"schema", "s.json"}, {"lanes", "1"}});
  const std::string file = folder.folder() / "s.json";
  e2e::write_file(file, R"({"properties": {"locale": {"const": "nothing"}}})");
  send(1000, 1, {.invalid = 0, .broken = 0, .duplicate = 0});
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  EXPECT_TRUE(eventually([&] { return letters() == 99; }));  // Those before the storm was detected.
  const std::uint64_t before = letters();
  for (const std::string content : {"{}", "{"}) {
    e2e::write_file(file, content);
    const auto refusals = [&] {
      const std::string log = pipeline.log();
      std::size_t count = 0;
      for (std::size_t at = 0; (at = log.find("s.json has changed", at)) != log.npos; ++at) ++count;
      return count;
    };
    const std::size_t refused = refusals();
    pipeline.signal(SIGHUP);
    EXPECT_TRUE(eventually([&] { return refusals() > refused; })) << pipeline.log();
  }
  EXPECT_EQ(pipeline.log().find("text=reloaded"), std::string::npos) << pipeline.log();
  EXPECT_EQ(pipeline.breaker(), "halted");
  EXPECT_EQ(letters(), before);
  e2e::write_file(file, "{}");
  EXPECT_EQ(pipeline.terminate(), 7);
  PipelineProcess next(folder);
  ASSERT_TRUE(next.start());
  EXPECT_TRUE(eventually([&] { return next.ended() >= 1000 - before; })) << next.log();
  EXPECT_EQ(letters(), before);
}

TEST_F(SqlitePipeline, ABadReloadChangesNothing) {
  const PipelineFolder folder(broker_);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  const std::string good = e2e::read_file(folder.config());
  for (const auto& [text, complaint] :
       {std::pair<std::string, std::string>{good + "\nworker: 3\n", "worker: is unknown"},
        {good + "\nlanes: 9\n", "lanes cannot change while the pipeline runs"},
        {"name: [", "config.yaml"}}) {
    e2e::write_file(folder.config(), text);
    pipeline.signal(SIGHUP);
    EXPECT_TRUE(eventually([&] { return pipeline.log().find(complaint) != std::string::npos; }))
        << complaint << "\n"
        << pipeline.log();
  }
  e2e::write_file(folder.config(), good + "\nbatch: {records: 7}\n");
  pipeline.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return pipeline.log().find("reloaded\n") != std::string::npos; }));
  send(20);  // Lanes that wait for a batch wait for the old size.
  EXPECT_TRUE(all_end(pipeline));
  send(500, 2);
  EXPECT_TRUE(all_end(pipeline));
  EXPECT_GE(pipeline.counter("batches"), inventory_.count(OrderFate::valid) / 7);
  EXPECT_EQ(pipeline.terminate(), 0);
  expect_everything_ended(inventory_, outcome(folder));
}

TEST_F(SqlitePipeline, SigtermUnderLoadLosesNothingAndRepeatsNothing) {
  const PipelineFolder folder(broker_, {{"batch.records", "20"}, {"window.records", "400"}});
  std::uint64_t applied = 0;
  for (unsigned life = 0; life < 3; ++life) {
    send(3000, life + 1);  // In each life: the one before may have processed all.
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() > 300; })) << pipeline.log();
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
    const std::string text = pipeline.out();
    applied += std::stoull(text.substr(text.find("drained: ") + 9));
    expect_nothing_skipped(inventory_, outcome(folder),
                           stored_offsets(broker_, "orders", "orders"));
  }
  // What was applied in one life was not read again in the next.
  EXPECT_EQ(applied, read_sqlite(folder.database()).rows.size());
  PipelineProcess last(folder);
  ASSERT_TRUE(last.start());
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  }));
  EXPECT_EQ(last.terminate(), 0);
  expect_everything_ended(inventory_, outcome(folder));
}

class SqliteKills : public SqlitePipeline, public ::testing::WithParamInterface<const char*> {};

TEST_P(SqliteKills, KilledAgainAndAgain) {
  const PipelineFolder folder(broker_, {{"batch.records", "20"}, {"delivery", GetParam()}});
  for (unsigned life = 1; life <= 6; ++life) {
    send(1500, life);
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() > 200; })) << pipeline.log();
    pipeline.kill();
    expect_nothing_skipped(inventory_, outcome(folder),
                           stored_offsets(broker_, "orders", "orders"));
  }
  PipelineProcess last(folder);
  ASSERT_TRUE(last.start());
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  })) << last.log();
  EXPECT_TRUE(eventually([&] { return last.status()["window"]["records"] == 0; }));
  EXPECT_EQ(last.terminate(), 0) << last.log();
  expect_everything_ended(inventory_, outcome(folder));
}
INSTANTIATE_TEST_SUITE_P(Delivery, SqliteKills,
                         ::testing::Values("at_least_once", "exactly_once_effect"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(SqlitePipeline, ASecondOneJoinsAndLeaves) {
  const PipelineFolder folder(broker_, {{"batch.records", "20"}});
  send(4000);
  PipelineProcess first(folder);
  PipelineProcess second(folder);
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(second.start());
  send(4000, 2);
  EXPECT_TRUE(eventually([&] { return first.ended() > 1000; }));
  EXPECT_EQ(second.terminate(), 0) << second.log();
  ASSERT_TRUE(second.start());
  EXPECT_EQ(first.terminate(), 0) << first.log();
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  })) << second.log();
  EXPECT_EQ(second.terminate(), 0) << second.log();
  expect_everything_ended(inventory_, outcome(folder));
}

// Without a key only the marks prevent duplicate rows.
TEST_F(SqlitePipeline, AZombieCannotWrite) {
  const PipelineFolder folder(broker_,
                              {{"batch.records", "10"}, {"delivery", "exactly_once_effect"}});
  folder.remove_key();
  send(6000, 1, {.invalid = 0, .broken = 0, .duplicate = 0});
  PipelineProcess zombie(folder);
  ASSERT_TRUE(zombie.start());
  EXPECT_TRUE(eventually([&] { return zombie.ended() > 200; }));
  // Not in the middle of a transaction: then the file would be locked, and all would wait.
  const auto is_unlocked = [&] {
    zombie.pause();
    if (sql(folder.database(), "BEGIN IMMEDIATE; ROLLBACK").empty()) return true;
    zombie.resume();
    return false;
  };
  ASSERT_TRUE(eventually(is_unlocked));
  send(2000, 2, {.invalid = 0, .broken = 0, .duplicate = 0});
  PipelineProcess heir(folder);
  ASSERT_TRUE(heir.start());
  EXPECT_TRUE(eventually([&] { return heir.ended() > 200; }, seconds{60})) << heir.log();
  zombie.resume();
  EXPECT_TRUE(eventually(
      [&] { return read_sqlite(folder.database()).rows.size() >= inventory_.entries().size(); },
      seconds{60}))
      << heir.log();
  EXPECT_EQ(zombie.terminate().has_value(), true);
  EXPECT_EQ(heir.terminate().has_value(), true);
  expect_everything_ended(inventory_, outcome(folder));
}

// Without the sink it is unknown where to begin; the seat is kept all the same.
TEST_F(SqlitePipeline, ASinkThatIsOutWhenAPartitionComesIsWaitedFor) {
  const PipelineFolder folder(broker_, {{"delivery", "exactly_once_effect"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  send(1000);
  PipelineProcess first(folder);
  ASSERT_TRUE(first.start());
  EXPECT_TRUE(all_end(first));
  PipelineProcess second(folder);
  ASSERT_TRUE(second.start());
  fs::rename(folder.database(), folder.database() + ".aside");
  first.kill();
  send(1000, 2);
  EXPECT_TRUE(eventually([&] { return second.breaker() == "open"; }, seconds{30})) << second.log();
  std::this_thread::sleep_for(seconds{12});  // Longer than the broker waits for an answer.
  fs::rename(folder.database() + ".aside", folder.database());
  EXPECT_TRUE(eventually([&] {
    return read_sqlite(folder.database()).rows.size() == inventory_.count(OrderFate::valid);
  })) << second.log();
  EXPECT_TRUE(eventually([&] { return second.status()["window"]["records"] == 0; }));
  EXPECT_EQ(second.terminate(), 0) << second.log();
  expect_everything_ended(inventory_, outcome(folder));
}

// Each partition's query then takes as long as SQLite waits for a lock.
TEST_F(SqlitePipeline, ASinkThatIsLockedWhenPartitionsComeIsWaitedFor) {
  const PipelineFolder folder(broker_, {{"delivery", "exactly_once_effect"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  send(1000);
  sqlite3* holder = nullptr;
  ASSERT_EQ(sqlite3_open(folder.database().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; }, seconds{30}));
  std::this_thread::sleep_for(seconds{12});  // Longer than the broker waits for an answer.
  sqlite3_close_v2(holder);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.log().find("did not answer"), std::string::npos) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_everything_ended(inventory_, outcome(folder));
}

}  // namespace
}  // namespace baton::pipeline
