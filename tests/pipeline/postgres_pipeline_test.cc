// The order pipeline from a Baton stream into a real PostgreSQL that is stopped, killed, frozen,
// locked and made read-only under it.
#include "pipeline/postgres_pipeline.h"

#include <csignal>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

// Stopped as by a crash, frozen, made read-only, its backends terminated: each an outage, none of
// which makes a dead letter or loses a record.
TEST_F(PostgresPipeline, OutagesOfEveryKindAreWaitedFor) {
  const PipelineFolder folder(broker_,
                              settings({{"window.records", "1000"}, {"sink.timeout", "2s"}}));
  send(1000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  const std::uint64_t letters_before = letters();
  std::uint64_t seed = 1;
  const auto during = [&](const char* what, const auto& begin, const auto& end) {
    begin();
    send(1000, ++seed, kNoTrouble);
    EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; }, seconds{30}))
        << what << "\n"
        << pipeline.log();
    EXPECT_LE(pipeline.status()["window"]["records"].get<int>(), 1000) << what;
    end();
    EXPECT_TRUE(all_end(pipeline)) << what << "\n" << pipeline.log();
    EXPECT_EQ(letters(), letters_before) << what;
  };
  during("immediate stop", [&] { server_->stop_immediate(); }, [&] { server_->start(); });
  during("killed", [&] { server_->kill(); }, [&] { server_->start(); });
  during(
      "read-only", [&] { server_->set_read_only(true); }, [&] { server_->set_read_only(false); });
  during("frozen", [&] { server_->pause(); }, [&] { server_->resume(); });
  server_->terminate_backends();
  send(1000, ++seed, kNoTrouble);
  expect_end(pipeline);
}

// A statement that hangs has its own timeout, which may be longer than a user's patience.
TEST_F(PostgresPipeline, AFrozenServerDoesNotOutlastADrain) {
  const PipelineFolder folder(broker_, settings({{"drain", "1s"}, {"sink.timeout", "1m"}}));
  send(500);
  {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
    server_->pause();
    send(500, 2);
    EXPECT_TRUE(eventually([&] { return pipeline.counter("received") == 1000; }));
    const auto begin = e2e::Clock::now();
    EXPECT_EQ(pipeline.terminate(), 7) << pipeline.log();
    EXPECT_LT(e2e::Clock::now() - begin, seconds{10});
    server_->resume();
  }
  expect_nothing_skipped(inventory_, outcome(), stored_offsets(broker_, "orders", "orders"));
  PipelineProcess last(folder);
  ASSERT_TRUE(last.start());
  EXPECT_TRUE(eventually([&] {
    return server_->value("SELECT count(*) FROM orders") ==
           std::to_string(inventory_.count(orders::OrderFate::valid));
  })) << last.log();
  EXPECT_TRUE(eventually([&] { return last.status()["lag"] == 0; }));
  EXPECT_EQ(last.terminate(), 0) << last.log();
  expect_everything_ended(inventory_, outcome());
}

// A statement that waits for a lock is cancelled by its timeout, tried again with half the batch,
// and is an outage if that does not help.
TEST_F(PostgresPipeline, ALockedTableIsWaitedFor) {
  const PipelineFolder folder(broker_,
                              settings({{"sink.timeout", "300ms"}, {"retry.attempts", "1"}}));
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  PostgresSession other(server_->url());
  ASSERT_EQ(other.run("BEGIN"), "");
  ASSERT_EQ(other.run("LOCK TABLE orders IN EXCLUSIVE MODE"), "");
  send(200);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.counter("retries") > 0; }, seconds{60}))
      << pipeline.log();
  EXPECT_EQ(pipeline.counter("applied"), 0U);
  ASSERT_EQ(other.run("ROLLBACK"), "");
  expect_end(pipeline);
}

TEST_F(PostgresPipeline, OneBadRowDoesNotTakeItsNeighboursAlong) {
  const PipelineFolder folder(broker_, settings({{"batch.records", "500"}}));
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  server_->query("ALTER TABLE payments ADD CHECK (payment_dt % 101 <> 0)");
  send(3000, 1, kNoTrouble);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline));
  EXPECT_EQ(pipeline.terminate(), 0);
  const Outcome ended = outcome();
  EXPECT_GT(ended.letters.size(), 5U);
  EXPECT_EQ(ended.rows.size() + ended.letters.size(), 3000U);
  for (const Outcome::Row& row : ended.rows) EXPECT_FALSE(ended.letters.contains(row.place));
  EXPECT_EQ(ended.orphans, 0U);
}

// It does not recover by itself.
TEST_F(PostgresPipeline, ADatabaseThatIsNamedWronglyIsAMistakeOfTheConfig) {
  for (const std::string& url : {server_->url("nowhere"), server_->guarded_url("wrong")}) {
    const PipelineFolder folder(broker_, settings({{"sink.url", url}}));
    const auto checked = folder.check();
    EXPECT_EQ(checked.exit_code, 2) << checked.err;
    PipelineProcess pipeline(folder);
    pipeline.launch();
    EXPECT_EQ(pipeline.wait(seconds{30}), 2) << pipeline.log();
  }
}

TEST_F(PostgresPipeline, WhatEveryRecordWouldFailOnHalts) {
  const PipelineFolder folder(
      broker_, settings({{"sink.url", server_->guarded_url(PostgresServer::kPassword)}}));
  server_->query(fmt::format("GRANT ALL ON SCHEMA public TO {}", PostgresServer::kGuarded));
  send(300);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  const std::uint64_t letters_before = letters();
  server_->query("ALTER TABLE items RENAME TO hidden");
  send(300, 2, kNoTrouble);
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  server_->query("ALTER TABLE hidden RENAME TO items");
  pipeline.signal(SIGHUP);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  server_->query(fmt::format("ALTER ROLE {} PASSWORD 'other'", PostgresServer::kGuarded));
  server_->terminate_backends();
  send(300, 3, kNoTrouble);
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  EXPECT_EQ(letters(), letters_before);
  server_->query(fmt::format("ALTER ROLE {} PASSWORD '{}'", PostgresServer::kGuarded,
                             PostgresServer::kPassword));
  pipeline.signal(SIGHUP);
  expect_end(pipeline);
}

// Without a key only the marks prevent duplicate rows.
TEST_F(PostgresPipeline, AZombieCannotWrite) {
  const PipelineFolder folder(
      broker_, settings({{"batch.records", "10"}, {"delivery", "exactly_once_effect"}}));
  folder.remove_key();
  send(4000, 1, kNoTrouble);
  PipelineProcess zombie(folder);
  ASSERT_TRUE(zombie.start());
  EXPECT_TRUE(eventually([&] { return zombie.ended() > 200; }));
  zombie.pause();
  send(1000, 2, kNoTrouble);  // For the successor: the zombie may have processed all.
  PipelineProcess heir(folder);
  ASSERT_TRUE(heir.start());
  EXPECT_TRUE(eventually([&] { return heir.ended() > 200; }, seconds{60})) << heir.log();
  zombie.resume();
  EXPECT_TRUE(eventually(
      [&] {
        return std::stoull(server_->value("SELECT count(*) FROM orders")) >=
               inventory_.entries().size();
      },
      seconds{60}))
      << heir.log();
  EXPECT_TRUE(zombie.terminate().has_value());
  EXPECT_TRUE(heir.terminate().has_value());
  expect_everything_ended(inventory_, outcome());
}

}  // namespace
}  // namespace baton::pipeline
