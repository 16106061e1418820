// Another client writes the same rows of PostgreSQL, in an open transaction, while a pipeline does.
// The pipeline waits, tries again, and makes no dead letter.
#include <string>

#include <gtest/gtest.h>

#include "pipeline/postgres_pipeline.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

class PostgresConflict : public PostgresPipeline {
 protected:
  /// So that the other client has tables to write to before the pipeline does.
  static void make_tables(const PipelineFolder& folder) {
    const auto made = folder.check({"--apply"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  const std::string& uid(Place place) { return inventory_.entries().at(place).order_uid; }
  bool somebody_waits() {
    return eventually(
        [&] { return server_->value("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"; });
  }
  static std::uint64_t retried(const PipelineProcess& pipeline) {
    const nlohmann::json status = pipeline.status();
    return status.is_object() ? status["errors"].value("retry", std::uint64_t{0}) : 0;
  }
};

TEST_F(PostgresConflict, ADeadlockIsTriedAgain) {
  // One batch, in a known order.
  const PipelineFolder folder(
      broker_, settings({{"lanes", "1"}, {"batch.records", "500"}, {"batch.linger", "300ms"}}));
  make_tables(folder);
  // PostgreSQL ends the one that waits longer: the other has time to close the circle.
  server_->query("ALTER SYSTEM SET deadlock_timeout = '2s'");
  server_->query("SELECT pg_reload_conf()");
  send(200, 1, kNoTrouble);
  PostgresSession other(server_->url());
  ASSERT_EQ(other.run("SET deadlock_timeout = '1min'"), "");
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid({0, 10}))), "");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  ASSERT_TRUE(somebody_waits()) << pipeline.log();
  ASSERT_EQ(other.run(insert_sql(uid({0, 0}))), "");  // Returns when the pipeline has given way.
  EXPECT_NE(server_->log().find("deadlock detected"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return retried(pipeline) > 0; })) << pipeline.log();
  EXPECT_EQ(server_->value("SELECT count(*) FROM orders"), "0");
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.counter("outages"), 0U);
  EXPECT_EQ(letters(), 0U);
  expect_end(pipeline);
}

// Its attempts are used up, which is an outage, not poison.
TEST_F(PostgresConflict, ALockThatIsNotGivenIsTriedAgain) {
  const PipelineFolder folder(broker_, settings());
  make_tables(folder);
  server_->query("ALTER DATABASE postgres SET lock_timeout = '200ms'");
  send(200, 1, kNoTrouble);
  PostgresSession other(server_->url());
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid({0, 10}))), "");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return retried(pipeline) > 4; })) << pipeline.log();
  EXPECT_NE(pipeline.log().find("55P03"), std::string::npos) << pipeline.log();
  EXPECT_EQ(letters(), 0U);
  ASSERT_EQ(other.run("ROLLBACK"), "");
  expect_end(pipeline);
  EXPECT_EQ(letters(), 0U);
}

TEST_F(PostgresConflict, ASerializationFailureIsTriedAgain) {
  const PipelineFolder folder(broker_, settings());
  make_tables(folder);
  server_->query("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'");
  send(200, 1, kNoTrouble);
  PostgresSession other(server_->url());
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid({0, 10}))), "");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  ASSERT_TRUE(somebody_waits()) << pipeline.log();
  ASSERT_EQ(other.run("COMMIT"), "");
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_NE(server_->log().find("could not serialize access"), std::string::npos);
  EXPECT_GT(retried(pipeline), 0U);
  EXPECT_EQ(pipeline.counter("applied"), 199U);
  EXPECT_EQ(pipeline.counter("duplicates"), 1U);  // The row is the other client's now.
  EXPECT_EQ(server_->value("SELECT count(*) FROM orders"), "200");
  EXPECT_EQ(letters(), 0U);
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// The first record of its lane waits for long. The window fills up with the records behind it, and
// only with those; nothing passes it; the seats are kept.
TEST_F(PostgresConflict, ASlowKeyAtTheHeadKeepsNoOtherLaneWaiting) {
  const PipelineFolder folder(broker_,
                              settings({{"window.records", "400"}, {"batch.records", "20"}}));
  make_tables(folder);
  send(4000, 1, kNoTrouble);
  PostgresSession other(server_->url());
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid({0, 5}))), "");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  ASSERT_TRUE(somebody_waits()) << pipeline.log();
  // Three lanes of four: about three end for each that waits.
  EXPECT_TRUE(eventually([&] { return pipeline.ended() > 800; })) << pipeline.log();
  EXPECT_TRUE(eventually([&] { return pipeline.status()["window"]["records"] == 400; }));
  Outcome meanwhile = read_postgres(*server_);
  const auto committed = stored_offsets(broker_, "orders", "orders");
  expect_nothing_skipped(inventory_, meanwhile, committed);
  EXPECT_LE(committed.contains(0) ? committed.at(0) : 0, 5);
  EXPECT_EQ(pipeline.breaker(), "closed");
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  for (const auto& partition : pipeline.status()["partitions"]) EXPECT_EQ(partition["epoch"], 1);
  EXPECT_EQ(letters(), 0U);
  expect_end(pipeline);
}

}  // namespace
}  // namespace baton::pipeline
