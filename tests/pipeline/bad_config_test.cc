// What is wrong is reported before anything is consumed, in words that name the place.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <baton/broker.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "e2e/broker_process.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {
namespace {

using e2e::BrokerProcess;

class BadConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream("orders").create(2).has_value());
  }
  /// Neither `check` nor `run` accepts the config; both say why.
  void expect_refusal(const PipelineFolder& folder, int code, const std::string& complaint) {
    for (const char* verb : {"check", "run"}) {
      const auto result = e2e::run_command({e2e::binary(), "pipeline", verb, folder.config()},
                                           {.environment = folder.environment()});
      EXPECT_EQ(result.exit_code, code) << verb << ": " << result.err;
      EXPECT_NE(result.err.find(complaint), std::string::npos)
          << verb << ": " << result.err << "\nbut expected: " << complaint;
    }
    EXPECT_TRUE(stored_offsets(broker_, "orders", "orders").empty());
  }
  /// Failures that may end by themselves: `check` reports them at once, `run` waits for as long as
  /// max_outage says.
  void expect_outage(PipelineFolder folder, const std::string& what, const std::string& complaint) {
    const auto checked = folder.check();
    EXPECT_EQ(checked.exit_code, 5) << checked.err;
    EXPECT_NE(checked.err.find(complaint), std::string::npos) << checked.err;
    folder.settings()["max_outage"] = "100ms";
    const auto run = e2e::run_command({e2e::binary(), "pipeline", "run", folder.config()},
                                      {.environment = folder.environment()});
    EXPECT_EQ(run.exit_code, 75) << run.err;
    EXPECT_NE(run.err.find(what + " OUT: "), std::string::npos) << run.err;
    EXPECT_NE(run.err.find(complaint), std::string::npos) << run.err;
    EXPECT_TRUE(stored_offsets(broker_, "orders", "orders").empty());
  }
  static void append(const PipelineFolder& folder, const std::string& text) {
    e2e::write_file(folder.config(), e2e::read_file(folder.config()) + text);
  }

  static void change(const PipelineFolder& folder, const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(folder.database().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sql << ": " << sqlite3_errmsg(database);
    sqlite3_close_v2(database);
  }
  /// Recreates a table with some other words: SQLite cannot alter most of it.
  static void change_table(const PipelineFolder& folder, const std::string& table,
                           const std::string& words, const std::string& others) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(folder.database().c_str(), &database), SQLITE_OK);
    std::string sql;
    const auto read = [](void* text, int, char** values, char**) {
      *static_cast<std::string*>(text) = values[0];
      return 0;
    };
    const std::string look = "SELECT sql FROM sqlite_schema WHERE name = '" + table + "'";
    EXPECT_EQ(sqlite3_exec(database, look.c_str(), read, &sql, nullptr), SQLITE_OK);
    sqlite3_close_v2(database);
    const std::size_t at = sql.find(words);
    ASSERT_NE(at, std::string::npos) << sql;
    change(folder, "DROP TABLE " + table + "; " + sql.replace(at, words.size(), others));
  }

  BrokerProcess broker_;
};

TEST_F(BadConfig, IsNamedWithItsLine) {
  const PipelineFolder folder(broker_);
  append(folder, "\nwokers: 9\n");
  expect_refusal(folder, 2, "wokers: is unknown");
  e2e::write_file(folder.config(), "name: orders\nworkers: 1000\n");
  expect_refusal(folder, 2, "config.yaml:2: workers: ");
  e2e::write_file(folder.config(), "name: [orders\n");
  expect_refusal(folder, 2, "config.yaml:");
  e2e::write_file(folder.config(), std::string("\xff\xfe\x00garbage", 10));
  expect_refusal(folder, 2, "config.yaml");
  e2e::write_file(folder.config(), "name: orders\nsink:\n\turl: stdout\n");
  expect_refusal(folder, 2, "config.yaml:3: line 3 begins with a tab; YAML wants spaces");
  e2e::write_file(folder.config(), "name: orders\nsink:\n  url: stdout:\n");
  expect_refusal(folder, 2, "config.yaml:3: a value that ends in ':'");
  e2e::write_file(folder.config(), std::string(2 << 20, '#'));
  expect_refusal(folder, 2, "larger than 1 MiB");
}

TEST_F(BadConfig, AFileThatIsNotThere) {
  const PipelineFolder folder(broker_, {{"schema", "nowhere.json"}});
  expect_refusal(folder, 2, "nowhere.json cannot be read: No such file or directory");
  expect_refusal(PipelineFolder(broker_, {{"schema", "."}}), 2, "cannot be read: Is a directory");
  const auto result = e2e::run_command({e2e::binary(), "pipeline", "run", "/nowhere/config.yaml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("/nowhere/config.yaml"), std::string::npos) << result.err;
}

TEST_F(BadConfig, ASchemaThatIsNotUnderstood) {
  const PipelineFolder folder(broker_, {{"schema", "s.json"}});
  e2e::write_file(folder.folder() / "s.json", R"({"type": "object", "unevaluatedItems": false})");
  expect_refusal(folder, 2, "unevaluatedItems");
  e2e::write_file(folder.folder() / "s.json", "{");
  expect_refusal(folder, 2, "s.json");
}

// Every record would become a dead letter.
TEST_F(BadConfig, AColumnThatTheSchemaHasNot) {
  const PipelineFolder folder(broker_);
  const std::string good = e2e::read_file(folder.config());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    e2e::write_file(folder.config(), text);
  };
  with("\"text order_uid\"", "\"text order_uiX\"");
  expect_refusal(folder, 2, "config.yaml:");
  expect_refusal(folder, 2,
                 "tables[0].columns.order_uid: table orders: column order_uid: the path "
                 "\"order_uiX\" is not allowed by the schema");
  with("integer items[].chrt_id", "integer items.chrt_id");
  expect_refusal(folder, 2, "column chrt_id: the path \"items.chrt_id\" is not possible");
}

TEST_F(BadConfig, ASourceThatIsNotThere) {
  const auto with = [&](const std::string& url) {
    return PipelineFolder(broker_, {{"source.url", url}});
  };
  expect_outage(with("baton-stream://127.0.0.1:1/orders"), "source", "source.url: ");
  expect_outage(with("kafka://127.0.0.1:1/orders"), "source", "127.0.0.1:1");
  expect_outage(PipelineFolder(broker_, {{"source.url", "nats://127.0.0.1:1/ORDERS/o.{partition}"},
                                         {"source.partitions", "2"}}),
                "source", "127.0.0.1:1");
  expect_refusal(with("baton-stream://" + broker_.address() + "/other"), 3,
                 "source.url: there is no stream 'other'; create it with 'baton stream create "
                 "other --partitions 4'");
  expect_refusal(with("baton-queue://" + broker_.address() + "/other"), 3, "other");
  expect_refusal(with("baton-stream://127.0.0.1/orders"), 2,
                 "'127.0.0.1' is not HOST:PORT; the form is baton-stream://HOST:PORT/STREAM");
}

TEST_F(BadConfig, ASinkThatIsNotThere) {
  expect_refusal(PipelineFolder(broker_, {{"sink.url", "sqlite:no/such/folder/orders.db"}}), 2,
                 "orders.db: there is no such folder");
  expect_outage(PipelineFolder(broker_, {{"sink.url", "postgres://nobody@127.0.0.1:1/orders"}}),
                "sink", "sink.url: ");
  expect_outage(
      PipelineFolder(broker_, {{"dead_letters.url", "baton-queue://127.0.0.1:1/orders.dlq"}}),
      "dead letters", "dead_letters.url: ");
  expect_refusal(PipelineFolder(broker_, {{"dead_letters.url", "file:no/such/folder/letters"}}), 2,
                 "dead_letters.url: cannot create ");
}

// libpq's message has two lines.
TEST_F(BadConfig, ADatabaseThatIsAwayIsToldOnOneLine) {
  const auto checked =
      PipelineFolder(broker_, {{"sink.url", "postgres://nobody@127.0.0.1:1/orders"}}).check();
  EXPECT_EQ(std::ranges::count(checked.err, '\n'), 1) << checked.err;
  EXPECT_EQ(checked.err.find('\t'), std::string::npos) << checked.err;
}

TEST_F(BadConfig, ABuiltInSchemaThatIsNone) {
  expect_refusal(PipelineFolder(broker_, {{"schema", "builtin:nosuch"}}), 2,
                 "schema: there is no builtin:nosuch, only builtin:orders");
}

TEST_F(BadConfig, APortThatIsInUse) {
  const PipelineFolder folder(broker_,
                              {{"http", "127.0.0.1:" + std::to_string(broker_.http_port())}});
  expect_refusal(folder, 2, "cannot listen on 127.0.0.1:");
  EXPECT_FALSE(std::filesystem::exists(folder.database()));
}

// Failures that never end by themselves.
TEST_F(BadConfig, ASinkThatIsNone) {
  const PipelineFolder folder(broker_);
  e2e::write_file(folder.database(), std::string(8192, 'x'));
  expect_refusal(folder, 2, "orders.db: file is not a database");
  expect_refusal(
      PipelineFolder(broker_, {{"sink.url", "postgres://127.0.0.1:1/orders?colour=red"}}), 2,
      "postgresql://user@host:port/name");
}

TEST_F(BadConfig, ATableWithOtherColumns) {
  const PipelineFolder folder(broker_);
  change(folder, "CREATE TABLE payments (order_uid TEXT, sum INTEGER)");
  expect_refusal(folder, 2, "table payments has no column");
}

TEST_F(BadConfig, ATableOfMarksWithOtherColumns) {
  const PipelineFolder folder(broker_, {{"delivery", "exactly_once_effect"}});
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  change(folder, "DROP TABLE baton_marks");
  const auto would = folder.check();
  EXPECT_EQ(would.exit_code, 0) << would.err;
  EXPECT_NE((would.out + would.err).find("would make table baton_marks"), std::string::npos)
      << would.out;
  change(folder, "CREATE TABLE baton_marks (pipeline TEXT, source TEXT, place INTEGER)");
  expect_refusal(folder, 2, "table baton_marks has no column partition");
}

// YAML gives some names a special meaning.
TEST_F(BadConfig, AnExampleOfAnyNameIsGood) {
  for (const std::string name : {"null", "-", "a:", ":", "1", "true"}) {
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream(name).create(1).has_value()) << name;
    const auto example =
        e2e::run_command({e2e::binary(), "pipeline", "init", name, "--address", broker_.address()});
    ASSERT_EQ(example.exit_code, 0) << example.err;
    const e2e::TempFolder folder;
    e2e::write_file(folder / "config.yaml", example.out);
    const auto checked =
        e2e::run_command({e2e::binary(), "pipeline", "check", folder / "config.yaml"});
    EXPECT_EQ(checked.exit_code, 0) << name << ": " << checked.err;
  }
}

// Every record would become a dead letter.
TEST_F(BadConfig, ATableWithAColumnThatNobodyFills) {
  const PipelineFolder folder(broker_);
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  change(folder, "ALTER TABLE deliveries ADD COLUMN note TEXT NOT NULL DEFAULT ''");
  EXPECT_EQ(folder.check().exit_code, 0);
  change_table(folder, "deliveries", "TEXT NOT NULL DEFAULT ''", "TEXT NOT NULL");
  expect_refusal(folder, 2, "column note is NOT NULL");
}

TEST_F(BadConfig, ATableWithAnOptionalColumnThatMustBeThere) {
  const PipelineFolder folder(broker_);
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  change_table(folder, "orders", "\"internal_signature\" TEXT",
               "\"internal_signature\" TEXT NOT NULL");
  expect_refusal(folder, 2, "column internal_signature is NOT NULL");
}

TEST_F(BadConfig, ATableThatNumbersItsRowsItself) {
  const PipelineFolder folder(broker_);
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  change_table(folder, "items", "(", "(id INTEGER PRIMARY KEY NOT NULL, ");
  EXPECT_EQ(folder.check().exit_code, 0) << folder.check().err;
  change_table(folder, "items", "PRIMARY KEY NOT NULL, ", "PRIMARY KEY DESC NOT NULL, ");
  expect_refusal(folder, 2, "column id is NOT NULL");
}

// The pipeline would halt at the first record.
TEST_F(BadConfig, ATableWhoseKeyIsNotUnique) {
  const PipelineFolder folder(broker_);
  ASSERT_EQ(folder.check({"--apply"}).exit_code, 0);
  change_table(folder, "orders", " UNIQUE", "");
  expect_refusal(folder, 2, "table orders");
  change(folder, "CREATE UNIQUE INDEX some ON orders (order_uid) WHERE locale = 'en'");
  expect_refusal(folder, 2, "UNIQUE");
  change(folder, "CREATE UNIQUE INDEX every ON orders (order_uid)");
  EXPECT_EQ(folder.check().exit_code, 0) << folder.check().err;
}

TEST_F(BadConfig, TheStatusOfNobody) {
  const auto result =
      e2e::run_command({e2e::binary(), "pipeline", "status", "--http", "127.0.0.1:1"});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_NE(result.err.find("127.0.0.1:1"), std::string::npos);
}

TEST_F(BadConfig, TheCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kCases = {
      {{"pipeline", "generate", "books"}, "only 'orders'"},
      {{"pipeline", "generate", "orders", "--invalid", "200%"}, "from 0% to 100%"},
      {{"pipeline", "generate", "orders", "--invalid", "-5%"}, "from 0% to 100%"},
      {{"pipeline", "generate", "orders", "--invalid", "60%", "--broken", "60%"}, "100%"},
      {{"pipeline", "generate", "orders", "--invalid", "0.05%"}, "0.1%"},
      {{"pipeline", "generate", "orders", "--to", "ftp://x"}, "baton-stream://HOST:PORT/STREAM"},
      {{"pipeline", "status", "--http", "nonsense"}, "HOST:PORT"},
      {{"pipeline", "init", "no good"}, "name"},
      {{"pipeline", "dlq", "ls", "orders", "--where", "colour=red"}, "class"},
      {{"pipeline", "dlq", "redrive", "orders", "--rate", "-1"}, "rate"},
      {{"pipeline", "dlq", "redrive", "orders", "--rate", "0"}, "more than 0"},
      {{"pipeline", "dlq", "ls", "orders", "--where", "class=POISON"}, "poison, duplicate"},
      {{"pipeline", "dlq", "ls", "orders", "--where", "stage=sinks"}, "decode, schema, mapping"},
      {{"pipeline", "dlq", "ls", "orders", "--where", "partition=0x1"}, "from 0 to 4294967295"},
      {{"pipeline", "dlq", "ls", "orders", "--where", "offset=01"}, "whole number"},
  };
  for (const auto& [arguments, complaint] : kCases) {
    std::vector<std::string> command{e2e::binary()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const auto result = e2e::run_command(command);
    EXPECT_EQ(result.exit_code, 2) << arguments[1] << " " << result.err;
    EXPECT_NE(result.err.find(complaint), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace baton::pipeline
