#include <algorithm>
#include <array>
#include <latch>
#include <numeric>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/postgres_fixture.h"

// What lands in PostgreSQL, and what its errors mean. Outages: postgres_outage_test.cc;
// exactly_once_effect: postgres_marks_test.cc.
namespace baton::pipeline {
namespace {

using flow::ErrorClass;

class PostgresSinkTest : public PostgresTest {};

TEST_F(PostgresSinkTest, ABatchLandsInAllTables) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items items = orders(0, 500);

  ASSERT_EQ(name_of(writer->write(items)), "none");

  EXPECT_EQ(count_of(items, Fate::applied), 500U);
  EXPECT_EQ(count("orders"), 500);
  EXPECT_EQ(count("deliveries"), 500);
  EXPECT_EQ(count("payments"), 500);
  EXPECT_EQ(count("items"), items_of(items));
  EXPECT_GT(count("items"), 500);
  const auto order = nlohmann::json::parse(bytes(123));
  EXPECT_EQ(
      server()
          .query(fmt::format(
              "SELECT o.track_number, o.sm_id, o.date_created = '{}', d.email, p.amount, "
              "(SELECT string_agg(position || ' ' || rid, ',' ORDER BY position) FROM items i "
              "WHERE i.order_uid = o.order_uid), o._source, o._partition, o._offset "
              "FROM orders o JOIN deliveries d USING (order_uid) JOIN payments p USING "
              "(order_uid) WHERE order_uid = '{}'",
              order["date_created"].get<std::string>(), uid(123)))
          .front(),
      (std::vector<std::string>{order["track_number"], order["sm_id"].dump(), "t",
                                order["delivery"]["email"], order["payment"]["amount"].dump(),
                                [&] {
                                  std::vector<std::string> rids;
                                  for (const auto& item : order["items"]) {
                                    rids.push_back(fmt::format("{} {}", rids.size(),
                                                               item["rid"].get<std::string>()));
                                  }
                                  std::string joined;
                                  for (const auto& rid : rids)
                                    joined += (joined.empty() ? "" : ",") + rid;
                                  return joined;
                                }(),
                                "orders-stream", "3", "123"}));
}

// Text that SQL, arrays or escapes could misinterpret.
TEST_F(PostgresSinkTest, TextArrivesAsItIs) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  const std::string name = "O'Neil \"\\\\\" {NULL,\"x\"} \n\t \\N $1 Grüße 你好 😀 NULL";
  auto order = nlohmann::json::parse(bytes(1));
  order["delivery"]["name"] = name;
  order["delivery"]["city"] = "NULL";
  order["delivery"]["region"] = " ";
  order["payment"]["request_id"] = "";
  order["payment"]["amount"] = 9007199254740991;
  order.erase("internal_signature");
  Items items;
  items.push_back(item_of(order.dump(), 1));
  auto without = nlohmann::json::parse(bytes(2));
  without["payment"].erase("request_id");
  items.push_back(item_of(without.dump(), 2));

  ASSERT_EQ(name_of(writer->write(items)), "none");

  EXPECT_EQ(server().query(fmt::format(
                "SELECT name, city, city IS NULL, region, request_id, amount, internal_signature "
                "FROM orders JOIN deliveries USING (order_uid) JOIN payments USING (order_uid) "
                "WHERE order_uid = '{}'",
                uid(1))),
            (PostgresServer::Rows{{name, "NULL", "f", " ", "", "9007199254740991", "NULL"}}));
  EXPECT_EQ(server().value(fmt::format(
                "SELECT request_id IS NULL FROM payments WHERE order_uid = '{}'", uid(2))),
            "t");
}

// The answer to a batch can be lost: the second time its rows are recognised.
TEST_F(PostgresSinkTest, AReplayIsAppliedAndChangesNothing) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items first = orders(0, 50);
  ASSERT_EQ(name_of(writer->write(first)), "none");
  const std::int64_t rows = count("items");

  Items again = orders(0, 60);
  ASSERT_EQ(name_of(sink->writer(1)->write(again)), "none");

  EXPECT_EQ(count_of(again, Fate::applied), 60U);
  EXPECT_EQ(count("orders"), 60);
  EXPECT_EQ(count("items"), items_of(again));
  EXPECT_GT(items_of(again), rows);
}

TEST_F(PostgresSinkTest, TheSameKeyFromElsewhereIsADuplicate) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items first = orders(0, 10);
  ASSERT_EQ(name_of(writer->write(first)), "none");

  Items second = orders(10, 10);
  second.push_back(item_of(bytes(4), 777));
  ASSERT_EQ(name_of(writer->write(second)), "none");
  EXPECT_EQ(second.back().fate, Fate::duplicate);
  EXPECT_EQ(count_of(second, Fate::applied), 10U);

  // The same offset of another source is another record.
  const auto other = make_sink([](PostgresSinkOptions& options) { options.source = "other"; });
  Items third = orders(4, 1);
  ASSERT_EQ(name_of(other->writer(0)->write(third)), "none");
  EXPECT_EQ(third.front().fate, Fate::duplicate);
  EXPECT_EQ(count("orders"), 20);
}

// The first one wins, and the child rows are its own.
TEST_F(PostgresSinkTest, ADuplicateWithinABatchLeavesNoRows) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items items = orders(0, 20);
  auto other = nlohmann::json::parse(bytes(5));
  other["delivery"]["name"] = "the second one";
  for (auto& item : other["items"]) item["name"] = "the second one";
  items.insert(items.begin() + 8, item_of(other.dump(), 900));
  items.push_back(item_of(other.dump(), 901));

  ASSERT_EQ(name_of(writer->write(items)), "none");

  EXPECT_EQ(items[8].fate, Fate::duplicate);
  EXPECT_EQ(items.back().fate, Fate::duplicate);
  EXPECT_EQ(count_of(items, Fate::applied), 20U);
  EXPECT_EQ(count("orders"), 20);
  EXPECT_EQ(count("deliveries"), 20);
  EXPECT_EQ(count("items"), items_of(orders(0, 20)));
  EXPECT_EQ(count("deliveries WHERE name = 'the second one'"), 0);
  EXPECT_EQ(count("items WHERE name = 'the second one'"), 0);
}

// A queue may deliver a record again while its first copy waits in the lane.
TEST_F(PostgresSinkTest, ARecordThatIsInABatchTwiceIsTakenApart) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items items = orders(0, 2);
  items.push_back(order(0));

  const auto error = writer->write(items);

  ASSERT_EQ(error.value().error_class, ErrorClass::retry);
  EXPECT_TRUE(error->halve_batch);
  const std::span all(items);
  ASSERT_EQ(name_of(writer->write(all.first(2))), "none");
  ASSERT_EQ(name_of(writer->write(all.subspan(2))), "none");
  EXPECT_EQ(count_of(items, Fate::applied), 3U);
  EXPECT_EQ(count("orders"), 2);
}

TEST_F(PostgresSinkTest, OneBadRowKeepsTheBatchOut) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  server().query(fmt::format("ALTER TABLE items ADD CHECK (order_uid <> '{}')", uid(321)));
  Items items = orders(0, 500);

  const auto check = writer->write(items);
  EXPECT_EQ(check.value().error_class, ErrorClass::poison);
  EXPECT_EQ(check->code, "23514");
  EXPECT_FALSE(check->halve_batch);
  EXPECT_EQ(count("orders"), 0);
  EXPECT_EQ(count("deliveries"), 0);

  // The same connection goes on with the other records.
  EXPECT_EQ(name_of(writer->write(std::span(items).first(321))), "none");
  EXPECT_EQ(name_of(writer->write(std::span(items).subspan(322))), "none");
  EXPECT_EQ(count("orders"), 499);
}

TEST_F(PostgresSinkTest, WhatDoesNotFitIsPoison) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  server().query("ALTER TABLE orders ALTER track_number TYPE varchar(40)");
  auto order = nlohmann::json::parse(bytes(0));
  order["track_number"] = std::string(41, 'x');
  Items items;
  items.push_back(item_of(order.dump(), 0));

  const auto error = writer->write(items);

  EXPECT_EQ(error.value().error_class, ErrorClass::poison);
  EXPECT_EQ(error->code, "22001");
}

// Only the idempotency key makes a duplicate; a second payment of one transaction is not one.
TEST_F(PostgresSinkTest, AnotherUniqueKeyIsPoison) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  server().query("CREATE UNIQUE INDEX ON payments (transaction)");
  auto order = nlohmann::json::parse(bytes(1));
  order["payment"]["transaction"] = nlohmann::json::parse(bytes(0))["payment"]["transaction"];
  Items items = orders(0, 1);
  ASSERT_EQ(name_of(writer->write(items)), "none");
  Items second;
  second.push_back(item_of(order.dump(), 1));

  const auto error = writer->write(second);

  EXPECT_EQ(error.value().error_class, ErrorClass::poison);
  EXPECT_EQ(error->code, "23505");
  EXPECT_EQ(count("orders"), 1);
}

// The statement has succeeded by then, and its transaction has not.
TEST_F(PostgresSinkTest, AnErrorAtTheCommitIsAnError) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  server().query("ALTER TABLE deliveries ADD UNIQUE (city) DEFERRABLE INITIALLY DEFERRED");
  auto order = nlohmann::json::parse(bytes(1));
  order["delivery"]["city"] = nlohmann::json::parse(bytes(0))["delivery"]["city"];
  Items items = orders(0, 1);
  items.push_back(item_of(order.dump(), 1));

  const auto error = writer->write(items);

  EXPECT_EQ(error.value().error_class, ErrorClass::poison);
  EXPECT_EQ(error->code, "23505");
  EXPECT_EQ(count_of(items, Fate::open), 2U);
  EXPECT_EQ(count("orders"), 0);
}

TEST_F(PostgresSinkTest, EveryTypeArrives) {
  using enum schema::ColumnType;
  schema::TableMapping things{.name = "input", .rows = "", .columns = {}};
  things.columns.push_back({.name = "id", .path = "id", .type = integer});
  things.columns.push_back({.name = "amount", .path = "amount", .type = real});
  things.columns.push_back({.name = "good", .path = "good", .type = boolean, .optional = true});
  things.columns.push_back({.name = "more \u00fc", .path = "more", .type = json});
  things.columns.push_back({.name = "select", .path = "at", .type = timestamp});
  PostgresSink sink({{.source = "s"}, server().url()}, schema::Schema::compile("{}").value(),
                    schema::Mapping::compile({.tables = {things}, .key = "id"}).value());
  ASSERT_TRUE(sink.check(true).has_value());
  const auto preparer = sink.preparer();
  const auto write = [&](std::int64_t offset, std::string document) {
    Items items;
    Item& item = items.emplace_back();
    item.record.offset = offset;
    item.record.value = std::move(document);
    item.prepared = preparer->prepare(item.record).value();
    EXPECT_EQ(name_of(sink.writer(0)->write(items)), "none");
    return items.front().fate;
  };

  const std::string first =
      R"({"id": -9223372036854775808, "amount": 0.1234567890123456789012345, "good": true,
          "more": {"a": [1, "\"", null]}, "at": "2021-11-26t06:22:19.5+03:00"})";
  EXPECT_EQ(write(1, first), Fate::applied);
  EXPECT_EQ(write(1, first), Fate::applied);
  EXPECT_EQ(write(2, first), Fate::duplicate);
  EXPECT_EQ(write(3, R"({"id": 1, "amount": 1e3, "more": "x", "at": "1969-12-31T23:59:60z"})"),
            Fate::applied);

  EXPECT_EQ(server().query("SELECT id, amount, good, \"more \u00fc\"::text, "
                           "\"select\" AT TIME ZONE 'UTC' FROM input ORDER BY id"),
            (PostgresServer::Rows{{"-9223372036854775808", "0.1234567890123456789012345", "t",
                                   R"({"a": [1, "\"", null]})", "2021-11-26 03:22:19.5"},
                                  {"1", "1000", "NULL", "\"x\"", "1970-01-01 00:00:00"}}));
  EXPECT_EQ(sink.check(false).value(), Findings{});
}

TEST_F(PostgresSinkTest, AStatementThatTakesTooLongIsHalved) {
  const auto sink = ready_sink([](PostgresSinkOptions& options) {
    options.statement_timeout = std::chrono::milliseconds(1000);
  });
  const auto writer = sink->writer(0);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; LOCK TABLE deliveries"), "");
  Items items = orders(0, 10);

  const auto unprepared = writer->write(items);
  ASSERT_EQ(other.run("ROLLBACK"), "");
  Items first = orders(10, 1);
  ASSERT_EQ(name_of(writer->write(first)), "none");
  ASSERT_EQ(other.run("BEGIN; LOCK TABLE deliveries"), "");
  const auto error = writer->write(items);

  EXPECT_EQ(unprepared.value().error_class, ErrorClass::retry);
  EXPECT_FALSE(unprepared->halve_batch) << "no record was sent";
  EXPECT_EQ(error.value().error_class, ErrorClass::retry);
  EXPECT_EQ(error->code, "57014");
  EXPECT_TRUE(error->halve_batch);
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_EQ(name_of(writer->write(items)), "none");
}

// PostgreSQL checks for a deadlock once, a fixed time after it has begun to wait.
TEST_F(PostgresSinkTest, ADeadlockIsTriedAgain) {
  const auto sink = ready_sink([](PostgresSinkOptions& options) {
    options.statement_timeout = std::chrono::seconds(30);
    options.url += "&options=-c%20deadlock_timeout%3D3s";
  });
  const auto writer = sink->writer(0);
  Items items = orders(0, 2);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("SET deadlock_timeout = '20s'; BEGIN; " + insert_sql(uid(1))), "");
  MaybeError error;
  std::thread thread([&] { error = writer->write(items); });
  // It has inserted the first row, and waits for the second.
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  EXPECT_EQ(other.run(insert_sql(uid(0))), "");
  thread.join();

  EXPECT_EQ(error.value().error_class, ErrorClass::retry);
  EXPECT_EQ(error->code, "40P01");
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_EQ(name_of(writer->write(items)), "none");
  EXPECT_EQ(count_of(items, Fate::applied), 2U);
}

// The conflicting row does not exist yet when the statement begins, and is not in its snapshot.
TEST_F(PostgresSinkTest, AKeyThatIsTakenMeanwhileIsADuplicate) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  Items items = orders(0, 2);
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; " + insert_sql(uid(1))), "");
  MaybeError error;
  std::thread thread([&] { error = writer->write(items); });
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  EXPECT_EQ(other.run("COMMIT"), "");
  thread.join();

  EXPECT_EQ(name_of(error), "none");
  EXPECT_EQ(items[0].fate, Fate::applied);
  EXPECT_EQ(items[1].fate, Fate::duplicate);
  EXPECT_EQ(count("deliveries"), 1);
}

// The row was not stored, so it must not count as one that exists already.
TEST_F(PostgresSinkTest, ARowThatIsThrownAwayIsNoDuplicate) {
  const auto sink = ready_sink();
  const auto writer = sink->writer(0);
  throw_away(fmt::format("NEW.order_uid = '{}'", uid(1)));
  Items items = orders(0, 3);

  EXPECT_EQ(name_of(writer->write(items)), kNotTaken);
  EXPECT_EQ(count_of(items, Fate::applied), 2U);
  EXPECT_EQ(items[1].fate, Fate::open);
  // The trigger may have been a mistake, or the row of another client that held the key is gone.
  server().query("DROP TRIGGER throw_away ON orders");
  EXPECT_EQ(name_of(writer->write(std::span(items).subspan(1, 1))), "none");
  EXPECT_EQ(items[1].fate, Fate::applied);
  EXPECT_EQ(count("orders"), 3);
}

TEST_F(PostgresSinkTest, AMissingTableIsConfigUntilItIsThere) {
  const auto sink = make_sink();
  const auto writer = sink->writer(0);
  Items items = orders(0, 3);

  const auto before = writer->write(items);
  EXPECT_EQ(before.value().error_class, ErrorClass::config);
  EXPECT_EQ(before->code, "42P01");

  ASSERT_TRUE(sink->check(true).has_value());
  EXPECT_EQ(name_of(writer->write(items)), "none");

  server().query("ALTER TABLE items RENAME TO elsewhere");
  Items more = orders(3, 3);
  const auto after = writer->write(more);
  EXPECT_EQ(after.value().error_class, ErrorClass::config);
  EXPECT_EQ(after->code, "42P01");
  server().query("ALTER TABLE elsewhere RENAME TO items");
  EXPECT_EQ(name_of(writer->write(more)), "none");
}

TEST_F(PostgresSinkTest, WrongNamesAndPasswordsAreConfig) {
  const auto error_with = [&](const std::string& url) {
    const auto sink = make_sink([&](PostgresSinkOptions& options) { options.url = url; });
    Items items = orders(0, 1);
    const auto error = sink->writer(0)->write(items);
    EXPECT_EQ(name_of(sink->probe()), name_of(error));
    EXPECT_EQ(error.value_or(flow::SinkError{}).error_class, ErrorClass::config) << name_of(error);
    return name_of(error);
  };
  EXPECT_TRUE(error_with(server().guarded_url("wrong")).starts_with("config 28P01: "));
  EXPECT_TRUE(error_with(server().guarded_url("")).starts_with("config 28P01: "));
  EXPECT_TRUE(error_with(server().url("nowhere")).starts_with("config 3D000: "));
  EXPECT_TRUE(error_with("postgresql://a:secret@[b/c").starts_with("config the url"));
  EXPECT_FALSE(error_with("postgresql://a:secret@[b/c").contains("secret"));
  const auto right = make_sink([&](PostgresSinkOptions& options) {
    options.url = server().guarded_url(PostgresServer::kPassword);
  });
  EXPECT_EQ(name_of(right->probe()), "none");
  EXPECT_EQ(right->name(), fmt::format("postgres:127.0.0.1:{}/postgres", server().port()));
}

TEST_F(PostgresSinkTest, CheckSaysWhatItWouldMakeAndMakesIt) {
  const auto sink = make_sink();
  EXPECT_EQ(sink->check(false).value(),
            (Findings{missing(false, "table", "orders"), missing(false, "table", "deliveries"),
                      missing(false, "table", "payments"), missing(false, "table", "items")}));
  EXPECT_EQ(count("pg_tables WHERE schemaname = 'public'"), 0);
  EXPECT_EQ(sink->check(true).value().front(), missing(true, "table", "orders"));
  EXPECT_EQ(sink->check(true).value(), Findings{});
  EXPECT_EQ(server().value("SELECT count(*) FROM pg_indexes WHERE tablename = 'items'"), "1");
  const auto once = make_sink([](PostgresSinkOptions& options) { options.exactly_once = true; });
  EXPECT_EQ(once->check(true).value(), (Findings{missing(true, "table", "baton_marks")}));
  EXPECT_EQ(once->check(true).value(), Findings{});
}

// Any number of processes may run one config, and any of them may be the first.
TEST_F(PostgresSinkTest, WhoeverIsFirstMakesTheTables) {
  constexpr std::size_t kMany = 6;
  for (int round = 0; round < 5; ++round) {
    server().query(
        "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    std::array<std::size_t, kMany> made{};
    std::latch all_here(kMany);
    {
      std::vector<std::jthread> processes;
      for (std::size_t& count : made) {
        processes.emplace_back([&] {
          const auto sink =
              make_sink([](PostgresSinkOptions& options) { options.exactly_once = true; });
          EXPECT_EQ(name_of(sink->probe()), "none");
          all_here.arrive_and_wait();
          const auto done = sink->check(true);
          EXPECT_TRUE(done.has_value()) << done.error().text;
          if (done.has_value()) count = done->size();
        });
      }
    }
    EXPECT_EQ(std::accumulate(made.begin(), made.end(), std::size_t{0}), 5U);
  }
}

TEST_F(PostgresSinkTest, CheckNamesWhatIsWrong) {
  const auto sink = ready_sink();
  const auto wrong_after = [&](const std::string& sql) {
    server().query(sql);
    const auto checked = sink->check(false);
    return checked.has_value() ? "good" : checked.error().text;
  };
  // Types that hold enough, or where the database will refuse.
  EXPECT_EQ(wrong_after("ALTER TABLE orders ALTER entry TYPE varchar(10), "
                        "ALTER sm_id TYPE integer, ALTER date_created TYPE timestamptz(3)"),
            "good");
  EXPECT_EQ(wrong_after("ALTER TABLE orders ALTER date_created TYPE timestamp"),
            "table orders: column date_created is timestamp without time zone; it should be "
            "timestamp with time zone");
  EXPECT_EQ(wrong_after("ALTER TABLE orders ALTER date_created TYPE timestamptz; "
                        "ALTER TABLE items DROP price"),
            "table items has no column price (bigint); it has brand, chrt_id, name, nm_id, "
            "order_uid, position, rid, sale, size, status, total_price, track_number");
  EXPECT_EQ(wrong_after("ALTER TABLE items ADD price bigint, ADD colour text NOT NULL"),
            "table items: column colour is NOT NULL without a default, and the mapping does not "
            "fill it");
  EXPECT_EQ(wrong_after("ALTER TABLE items ALTER colour SET DEFAULT 'red'; "
                        "ALTER TABLE payments ALTER request_id SET NOT NULL"),
            "table payments: column request_id is NOT NULL; the mapping says it is optional");
  EXPECT_EQ(wrong_after("ALTER TABLE payments ALTER request_id DROP NOT NULL; "
                        "ALTER TABLE orders DROP CONSTRAINT orders_order_uid_key"),
            "table orders: column order_uid has no unique index; the key needs one");
  EXPECT_EQ(wrong_after("CREATE UNIQUE INDEX ON orders (order_uid, entry)"),
            "table orders: column order_uid has no unique index; the key needs one");
  EXPECT_EQ(wrong_after("CREATE UNIQUE INDEX ON orders (order_uid) INCLUDE (entry)"), "good");
}

}  // namespace
}  // namespace baton::pipeline
