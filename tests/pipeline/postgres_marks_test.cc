#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/tcp_proxy.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/orders/orders.h"
#include "pipeline/postgres_fixture.h"

// exactly_once_effect: the marks move with the rows, and only the owner moves them.
namespace baton::pipeline {
namespace {

using flow::ErrorClass;

constexpr std::uint32_t kPartition = 3;

class PostgresMarksTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) sink_ = once_sink();
  }

  std::unique_ptr<PostgresSink> once_sink(std::uint32_t lanes = 2) const {
    return ready_sink([lanes](PostgresSinkOptions& options) {
      options.exactly_once = true;
      options.lanes = lanes;
    });
  }
  std::unique_ptr<PostgresSink> once_sink_unchecked(std::uint32_t lanes) const {
    return make_sink([lanes](PostgresSinkOptions& options) {
      options.exactly_once = true;
      options.lanes = lanes;
    });
  }
  static SinkMarks claim(PostgresSink& sink, std::int64_t next = 0,
                         std::uint32_t partition = kPartition) {
    const auto marks = sink.claim(partition, next);
    EXPECT_TRUE(marks.has_value()) << marks.error().text;
    return marks.value_or(SinkMarks{});
  }
  /// What the engine does when a partition is assigned.
  std::shared_ptr<OwnedPartition> own(PostgresSink& sink, std::uint32_t partition = kPartition) {
    SinkMarks marks = claim(sink, 0, partition);
    const std::int64_t begin = marks.begin;
    return std::make_shared<OwnedPartition>(partition, 1, begin, std::move(marks));
  }
  Items owned(const std::shared_ptr<OwnedPartition>& assignment, std::uint64_t first,
              std::size_t number, std::uint32_t lane = 0) {
    Items items = orders(first, number);
    for (Item& item : items) {
      item.assignment = assignment;
      item.record.partition = assignment->partition();
      item.lane = lane;
    }
    return items;
  }
  static PostgresServer::Rows stored() {
    return server().query(
        "SELECT partition, lane, lanes, epoch, next_offset, done_below FROM baton_marks ORDER BY "
        "1, 2");
  }

  std::unique_ptr<PostgresSink> sink_;
};

TEST_F(PostgresMarksTest, EveryClaimIsANewEpoch) {
  const SinkMarks first = claim(*sink_, 100);
  EXPECT_EQ(first.epoch, 1U);
  EXPECT_EQ(first.next, (std::vector<std::int64_t>{100, 100}));
  EXPECT_EQ(first.begin, 100);
  EXPECT_EQ(stored(), (PostgresServer::Rows{{"3", "0", "2", "1", "100", "100"},
                                            {"3", "1", "2", "1", "100", "100"}}));

  // The source's start counts for a new partition only.
  const SinkMarks second = claim(*sink_, 7);
  EXPECT_EQ(second.epoch, 2U);
  EXPECT_EQ(second.next, (std::vector<std::int64_t>{100, 100}));
  EXPECT_EQ(second.begin, 100);
  EXPECT_EQ(claim(*sink_, 5, 4).epoch, 1U);
}

TEST_F(PostgresMarksTest, ABatchMovesItsMark) {
  const auto assignment = own(*sink_);
  const auto writer = sink_->writer(1);
  Items items = owned(assignment, 5, 10, 1);

  ASSERT_EQ(name_of(writer->write(items)), "none");
  EXPECT_EQ(assignment->mark(1), 15);
  EXPECT_EQ(assignment->mark(0), 0);
  Items more = owned(assignment, 20, 5, 1);
  ASSERT_EQ(name_of(writer->write(more)), "none");

  EXPECT_EQ(count("orders"), 15);
  EXPECT_EQ(stored(), (PostgresServer::Rows{{"3", "0", "2", "1", "0", "0"},
                                            {"3", "1", "2", "1", "25", "0"}}));
}

// Lanes have separate marks; the progress of the whole partition is kept beside each mark.
TEST_F(PostgresMarksTest, TheNextOwnerBeginsWhereAllIsDone) {
  const auto assignment = own(*sink_);
  Items items = owned(assignment, 0, 10, 0);
  for (Item& item : items) item.ticket = assignment->delivered(item.record.offset, {});
  ASSERT_EQ(name_of(sink_->writer(0)->write(items)), "none");
  for (Item& item : items) assignment->done(item.ticket);
  Items more = owned(assignment, 10, 1, 0);
  ASSERT_EQ(name_of(sink_->writer(0)->write(more)), "none");

  const SinkMarks next = claim(*sink_);

  EXPECT_EQ(next.next, (std::vector<std::int64_t>{11, 0}));
  EXPECT_EQ(next.begin, 10);  // Not 0, though the other lane never had a record.
}

TEST_F(PostgresMarksTest, AZombieWritesNothing) {
  const auto before = own(*sink_);
  const auto writer = sink_->writer(0);
  Items items = owned(before, 0, 5);
  ASSERT_EQ(name_of(writer->write(items)), "none");
  const auto other = once_sink();
  const auto after = own(*other);

  Items late = owned(before, 5, 5);
  const auto error = writer->write(late);

  EXPECT_EQ(error.value().error_class, ErrorClass::fenced) << name_of(error);
  EXPECT_TRUE(before->dropped());
  EXPECT_FALSE(after->dropped());
  EXPECT_EQ(count("orders"), 5);
  Items right = owned(after, 5, 5);
  EXPECT_EQ(name_of(other->writer(0)->write(right)), "none");
  EXPECT_EQ(count_of(right, Fate::applied), 5U);
}

// The new owner comes while the old one's batch is in progress.
TEST_F(PostgresMarksTest, AZombieThatWaitsForTheClaimWritesNothing) {
  const auto assignment = own(*sink_);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; UPDATE baton_marks SET epoch = epoch + 1"), "");
  Items items = owned(assignment, 0, 5);
  MaybeError error;
  std::thread thread([&] { error = sink_->writer(0)->write(items); });
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  EXPECT_EQ(other.run("COMMIT"), "");
  thread.join();

  EXPECT_EQ(error.value().error_class, ErrorClass::fenced) << name_of(error);
  EXPECT_TRUE(assignment->dropped());
  EXPECT_EQ(count("orders"), 0);
}

// One of two partitions is lost: nothing of the batch is written, and the other's part is written
// next.
TEST_F(PostgresMarksTest, OneFencedPartitionKeepsTheBatchOut) {
  const auto kept = own(*sink_, 1);
  const auto lost = own(*sink_, 2);
  claim(*once_sink(), 0, 2);
  Items items = owned(kept, 0, 3);
  for (Item& item : owned(lost, 10, 3)) items.push_back(std::move(item));
  const auto writer = sink_->writer(0);

  const auto error = writer->write(items);

  EXPECT_EQ(error.value().error_class, ErrorClass::fenced);
  EXPECT_TRUE(lost->dropped());
  EXPECT_FALSE(kept->dropped());
  EXPECT_EQ(kept->mark(0), 0);
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(name_of(writer->write(std::span(items).first(3))), "none");
  EXPECT_EQ(kept->mark(0), 3);
}

TEST_F(PostgresMarksTest, ABatchOfSeveralPartitionsMovesAllItsMarks) {
  const auto one = own(*sink_, 1);
  const auto two = own(*sink_, 2);
  Items items = owned(one, 0, 3);
  for (Item& item : owned(two, 10, 3)) items.push_back(std::move(item));

  ASSERT_EQ(name_of(sink_->writer(0)->write(items)), "none");

  EXPECT_EQ(one->mark(0), 3);
  EXPECT_EQ(two->mark(0), 13);
  EXPECT_EQ(server().value("SELECT string_agg(next_offset::text, ' ' ORDER BY partition, lane) "
                           "FROM baton_marks"),
            "3 0 13 0");
}

// The answer to the commit is lost. The mark shows that it succeeded.
TEST_F(PostgresMarksTest, AnUnknownCommitIsFoundByItsMark) {
  e2e::TcpProxy proxy(server().port());
  const auto assignment = own(*sink_);
  const auto sink = make_sink([&](PostgresSinkOptions& options) {
    options.exactly_once = true;
    options.url = PostgresServer::url_at(proxy.port());
  });
  const auto writer = sink->writer(0);
  Items warm = owned(assignment, 0, 1);
  ASSERT_EQ(name_of(writer->write(warm)), "none");
  Items items = owned(assignment, 1, 19);
  MaybeError error;

  proxy.swallow_answers();
  std::thread thread([&] { error = writer->write(items); });
  EXPECT_TRUE(e2e::eventually([&] { return count("orders") == 20; }));
  proxy.reset();
  thread.join();
  ASSERT_EQ(error.value().error_class, ErrorClass::outage);
  EXPECT_EQ(assignment->mark(0), 1);

  const auto again = writer->write(items);
  EXPECT_EQ(again.value().error_class, ErrorClass::retry) << name_of(again);
  EXPECT_EQ(assignment->mark(0), 20);  // This tells the lane that they are stored.
  EXPECT_FALSE(assignment->dropped());
  EXPECT_EQ(count("orders"), 20);
  Items more = owned(assignment, 20, 2);
  EXPECT_EQ(name_of(writer->write(more)), "none");
}

TEST_F(PostgresMarksTest, APoisonedBatchMovesNoMark) {
  const auto assignment = own(*sink_);
  const auto writer = sink_->writer(0);
  server().query(fmt::format("ALTER TABLE items ADD CHECK (order_uid <> '{}')", uid(2)));
  Items items = owned(assignment, 0, 3);

  EXPECT_EQ(writer->write(items).value().error_class, ErrorClass::poison);
  EXPECT_EQ(assignment->mark(0), 0);
  EXPECT_EQ(server().value("SELECT max(next_offset) FROM baton_marks"), "0");
  EXPECT_EQ(name_of(writer->write(std::span(items).first(2))), "none");
  EXPECT_EQ(assignment->mark(0), 2);
}

// Errors quote the record. A record whose text mentions marks must not be mistaken for one about
// marks.
TEST_F(PostgresMarksTest, ARecordThatSpeaksOfMarksIsPoisonAlone) {
  const auto assignment = own(*sink_);
  const auto writer = sink_->writer(0);
  server().query(
      "ALTER TABLE orders ADD CHECK (locale <> 'xx'); "
      "CREATE FUNCTION number() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.customer_id LIKE 'baton%' THEN PERFORM NEW.customer_id::integer; END IF; "
      "RETURN NEW; END $$; "
      "CREATE TRIGGER number BEFORE INSERT ON deliveries FOR EACH ROW EXECUTE FUNCTION number()");
  server().query("ALTER TABLE deliveries ADD COLUMN customer_id text");
  Items items = owned(assignment, 0, 1);
  items.push_back(
      item_of(with(bytes(1), {{"customer_id", "baton_mark_missed 1"}, {"locale", "xx"}}), 1));
  items.back().assignment = assignment;

  const auto error = writer->write(items);

  EXPECT_EQ(name_of(error).substr(0, 13), "poison 23514:") << name_of(error);
  EXPECT_EQ(name_of(writer->write(std::span(items).first(1))), "none");
  // In the very words of the statement.
  server().query("ALTER TABLE deliveries ALTER customer_id SET DEFAULT 'baton_mark_missed 0'");
  Items said = owned(assignment, 2, 1);
  const auto again = writer->write(said);
  EXPECT_EQ(name_of(again).substr(0, 13), "poison 22P02:") << name_of(again);
  EXPECT_FALSE(assignment->dropped());
  EXPECT_EQ(assignment->mark(0), 1);
}

// The mark would say that the record was processed.
TEST_F(PostgresMarksTest, ARowThatIsThrownAwayMovesNoMark) {
  const auto assignment = own(*sink_);
  const auto writer = sink_->writer(0);
  throw_away(fmt::format("NEW.order_uid = '{}'", uid(1)));
  Items items = owned(assignment, 0, 3);

  const auto error = writer->write(items);

  EXPECT_EQ(name_of(error), kNotTaken);
  EXPECT_EQ(count_of(items, Fate::open), 3U);
  EXPECT_EQ(assignment->mark(0), 0);
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(name_of(writer->write(std::span(items).first(1))), "none");
  EXPECT_EQ(name_of(writer->write(std::span(items).subspan(1, 1))), kNotTaken);
  EXPECT_EQ(assignment->mark(0), 1);
}

// The conflicting row is not in the statement's snapshot, but in the next one's.
TEST_F(PostgresMarksTest, AKeyThatIsTakenMeanwhileIsADuplicateTheNextTime) {
  const auto assignment = own(*sink_);
  const auto writer = sink_->writer(0);
  Items items = owned(assignment, 0, 2);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid(1))), "");
  MaybeError error;
  std::thread thread([&] { error = writer->write(items); });
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  EXPECT_EQ(other.run("COMMIT"), "");
  thread.join();

  EXPECT_EQ(name_of(error), kNotTaken);
  EXPECT_EQ(name_of(writer->write(items)), "none");
  EXPECT_EQ(items[0].fate, Fate::applied);
  EXPECT_EQ(items[1].fate, Fate::duplicate);
}

TEST_F(PostgresMarksTest, DuplicatesAreStillFound) {
  const auto assignment = own(*sink_);
  Items items = owned(assignment, 0, 3);
  items.push_back(item_of(bytes(1), 50));
  items.back().assignment = assignment;

  ASSERT_EQ(name_of(sink_->writer(0)->write(items)), "none");

  EXPECT_EQ(items.back().fate, Fate::duplicate);
  EXPECT_EQ(count("orders"), 3);
  EXPECT_EQ(assignment->mark(0), 51);
}

TEST_F(PostgresMarksTest, SettlingMovesAllLanes) {
  const auto assignment = own(*sink_);
  Items items = owned(assignment, 0, 5);
  ASSERT_EQ(name_of(sink_->writer(0)->write(items)), "none");

  // Not by a former owner.
  EXPECT_EQ(name_of(sink_->settle(kPartition, 0, 99)), "none");
  EXPECT_EQ(server().value("SELECT max(next_offset) FROM baton_marks"), "5");
  EXPECT_EQ(name_of(sink_->settle(kPartition, assignment->sink_epoch(), 8)), "none");
  EXPECT_EQ(stored(),
            (PostgresServer::Rows{{"3", "0", "2", "1", "8", "8"}, {"3", "1", "2", "1", "8", "8"}}));
  // Nor back, by an owner that has not passed what another left behind.
  EXPECT_EQ(name_of(sink_->settle(kPartition, assignment->sink_epoch(), 7)), "none");
  EXPECT_EQ(server().value("SELECT min(next_offset) FROM baton_marks"), "8");
}

TEST_F(PostgresMarksTest, AnotherNumberOfLanesWantsADrain) {
  const auto assignment = own(*sink_);
  Items items = owned(assignment, 0, 5);
  ASSERT_EQ(name_of(sink_->writer(0)->write(items)), "none");
  const auto wider = once_sink_unchecked(3);

  const auto refused = wider->claim(kPartition, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().error_class, ErrorClass::config);
  EXPECT_EQ(refused.error().text,
            "partition 3 was written with 2 lanes and not drained; it cannot go on with 3: drain "
            "it with 2 first");
  const auto checked = once_sink_unchecked(3)->check(false);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, Errc::failed_precondition);
  EXPECT_NE(checked.error().text.find(refused.error().text), std::string::npos)
      << checked.error().text;
  // It has not taken the partition from its owner.
  Items more = owned(assignment, 5, 1);
  EXPECT_EQ(name_of(sink_->writer(0)->write(more)), "none");

  ASSERT_EQ(name_of(sink_->settle(kPartition, assignment->sink_epoch(), 6)), "none");
  const SinkMarks marks = claim(*wider);
  EXPECT_EQ(marks.epoch, 2U);
  EXPECT_EQ(marks.begin, 6);
  EXPECT_EQ(marks.next, (std::vector<std::int64_t>{6, 6, 6}));
  EXPECT_EQ(stored().size(), 3U);
  // And back.
  EXPECT_EQ(claim(*once_sink(2)).next.size(), 2U);
  EXPECT_EQ(stored().size(), 2U);
}

// Two sinks claim a new partition at once: one succeeds, and then the other.
TEST_F(PostgresMarksTest, AClaimThatIsOvertakenIsTriedAgain) {
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; INSERT INTO baton_marks SELECT 'test', 'orders-stream', 3, lane, 2, "
                      "1, 40, 40 FROM generate_series(0, 1) AS lane"),
            "");
  std::expected<SinkMarks, flow::SinkError> marks;
  std::thread thread([&] { marks = sink_->claim(kPartition, 0); });
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  EXPECT_EQ(other.run("COMMIT"), "");
  thread.join();

  ASSERT_FALSE(marks.has_value());
  EXPECT_EQ(marks.error().error_class, ErrorClass::retry);
  const SinkMarks again = claim(*sink_);
  EXPECT_EQ(again.epoch, 2U);
  EXPECT_EQ(again.begin, 40);
}

// A connection is used rarely: that the server was there once proves nothing.
TEST_F(PostgresMarksTest, AClaimFindsItsConnectionGoneAndMakesAnother) {
  claim(*sink_);
  server().stop_fast();
  const auto marks = sink_->claim(kPartition, 0);
  ASSERT_FALSE(marks.has_value());
  EXPECT_EQ(marks.error().error_class, ErrorClass::outage);
  ASSERT_TRUE(server().start());
  EXPECT_EQ(claim(*sink_).epoch, 2U);
  server().terminate_backends();
  EXPECT_EQ(claim(*sink_).epoch, 3U);
}

// A worker that is stopped in the middle of a claim must not keep others from it for ever.
TEST_F(PostgresMarksTest, AClaimThatWaitsTooLongIsTriedAgain) {
  claim(*sink_);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; SELECT 1 FROM baton_marks FOR UPDATE"), "");
  const auto hasty = make_sink([](PostgresSinkOptions& options) {
    options.exactly_once = true;
    options.statement_timeout = std::chrono::milliseconds(1000);
  });
  const auto marks = hasty->claim(kPartition, 0);
  ASSERT_FALSE(marks.has_value());
  EXPECT_EQ(marks.error().error_class, ErrorClass::retry);
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_EQ(claim(*hasty).epoch, 2U);
}

TEST_F(PostgresMarksTest, WithoutAKeyRowsAreSimplyAdded) {
  schema::RowMapping mapping = orders::order_mapping();
  mapping.key.clear();
  auto compiled = schema::Mapping::compile(std::move(mapping));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().text;
  server().query("ALTER TABLE orders DROP CONSTRAINT orders_order_uid_key");
  PostgresSink sink(
      {{.pipeline = "test", .source = "orders-stream", .lanes = 2, .exactly_once = true},
       server().url()},
      schema::Schema::compile(orders::order_schema()).value(), *compiled);
  ASSERT_TRUE(sink.check(false).has_value());
  const auto assignment = own(sink);
  Items items = owned(assignment, 0, 3);
  items.push_back(item_of(bytes(1), 50));
  items.back().assignment = assignment;

  ASSERT_EQ(name_of(sink.writer(0)->write(items)), "none");

  EXPECT_EQ(count_of(items, Fate::applied), 4U);
  EXPECT_EQ(count("orders"), 4);
  EXPECT_EQ(count("deliveries"), 4);
}

}  // namespace
}  // namespace baton::pipeline
