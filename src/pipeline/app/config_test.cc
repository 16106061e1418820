#include "pipeline/app/config.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/app/example.h"
#include "pipeline/app/registry.h"

namespace baton::pipeline {
namespace {

using Environment = std::map<std::string, std::string>;

std::string example() { return example_config("orders"); }

/// The example with some of its text replaced.
std::string example_with(const std::string& from, const std::string& to) {
  std::string text = example();
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text, const Environment& environment = {}) {
  const auto config = parse_config(text, "config.yaml", environment);
  return config.has_value() ? "accepted" : config.error().text;
}

TEST(PipelineConfig, TheExampleIsGoodAndSaysWhatIsUsual) {
  const auto config = parse_config(example(), "config.yaml", {});
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->name, "orders");
  EXPECT_EQ(config->source.endpoint.kind_name(), "baton-stream");
  EXPECT_EQ(config->source.endpoint.address, "127.0.0.1:7470");
  EXPECT_EQ(config->source.endpoint.name, "orders");
  EXPECT_EQ(config->source.group, "orders");
  EXPECT_EQ(config->sink.endpoint.kind_name(), "sqlite");
  EXPECT_EQ(config->sink.endpoint.name, "orders.db");
  EXPECT_EQ(config->rows.tables.size(), 4U);
  EXPECT_FALSE(config->engine.exactly_once);
  EXPECT_NE(example().find("SUBJECT.{partition} "), std::string::npos);
}

// Every value that the example mentions in a comment can be set, and is the default.
TEST(PipelineConfig, TheCommentsOfTheExampleAreTrue) {
  std::string text;
  for (std::size_t begin = 0; begin < example().size();) {
    const std::string all = example();
    const std::size_t end = all.find('\n', begin);
    std::string line = all.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t mark = line.find("# ");
    const bool is_setting = mark != std::string::npos &&
                            line.find(": ", mark) != std::string::npos &&
                            line.find_first_not_of(" #") != std::string::npos &&
                            std::islower(static_cast<unsigned char>(line[mark + 2])) != 0 &&
                            line.find(' ', mark + 2) == line.find(": ", mark) + 1;
    if (is_setting) line.erase(mark, 2);
    text += line + "\n";
  }
  const auto config = parse_config(text, "config.yaml", {});
  ASSERT_TRUE(config.has_value()) << config.error().text << "\n" << text;
  const auto plain = parse_config(example(), "config.yaml", {});
  ASSERT_TRUE(plain.has_value());
  EXPECT_GT(config->given.size(), plain->given.size() + 20);
  EXPECT_EQ(config->engine.window_records, plain->engine.window_records);
  EXPECT_EQ(config->engine.window_bytes, plain->engine.window_bytes);
  EXPECT_EQ(config->engine.lane.batch_records, plain->engine.lane.batch_records);
  EXPECT_EQ(config->engine.lane.batch_bytes, plain->engine.lane.batch_bytes);
  EXPECT_EQ(config->engine.lane.linger, plain->engine.lane.linger);
  EXPECT_EQ(config->engine.lane.retries, plain->engine.lane.retries);
  EXPECT_EQ(config->engine.lane.backoff.first, plain->engine.lane.backoff.first);
  EXPECT_EQ(config->engine.lane.backoff.most, plain->engine.lane.backoff.most);
  EXPECT_EQ(config->engine.breaker.probe.first, plain->engine.breaker.probe.first);
  EXPECT_EQ(config->engine.breaker.probe.most, plain->engine.breaker.probe.most);
  EXPECT_EQ(config->engine.breaker.outage_max, plain->engine.breaker.outage_max);
  EXPECT_EQ(config->engine.storm.in_a_row, plain->engine.storm.in_a_row);
  EXPECT_EQ(config->engine.storm.of_last, plain->engine.storm.of_last);
  EXPECT_EQ(config->engine.storm.percent, plain->engine.storm.percent);
  EXPECT_EQ(config->engine.workers, plain->engine.workers);
  EXPECT_EQ(config->engine.lanes, plain->engine.lanes);
  EXPECT_EQ(config->engine.order, plain->engine.order);
  EXPECT_EQ(config->engine.drain, plain->engine.drain);
  EXPECT_EQ(config->engine.commit_interval, plain->engine.commit_interval);
  EXPECT_EQ(config->http, plain->http);
  EXPECT_EQ(config->record_bytes_max, plain->record_bytes_max);
  EXPECT_EQ(config->sink.timeout, plain->sink.timeout);
  EXPECT_EQ(config->dead_letters.redrives_max, plain->dead_letters.redrives_max);
}

TEST(PipelineConfig, TheEnvironmentWins) {
  const auto config =
      parse_config(example(), "config.yaml",
                   {{"BATON_PIPELINE__SINK__URL", "postgres://somebody@localhost/orders"},
                    {"BATON_PIPELINE__WORKERS", "8"},
                    {"BATON_PIPELINE__RETRY__FIRST", "1s"},
                    {"PATH", "/bin"}});
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->sink.endpoint.kind_name(), "postgres");
  EXPECT_EQ(config->engine.workers, 8U);
  EXPECT_EQ(config->engine.lane.backoff.first, std::chrono::seconds(1));
}

// A header that is sent twice means something else than either value alone.
TEST(PipelineConfig, TheEnvironmentWinsWhereNamesAreFree) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  const std::string http =
      "name: a\nsource: {url: \"kafka://a:1/t\", properties: {security.protocol: plaintext}}\n"
      "sink:\n  url: http://a:1/\n  headers: {Authorization: old, Accept: all}\n"
      "dead_letters: {url: file:d}\n";
  const auto config =
      parse_config(http, "config.yaml",
                   {{"BATON_PIPELINE__SINK__HEADERS__AUTHORIZATION", "new"},
                    {"BATON_PIPELINE__SOURCE__PROPERTIES__SECURITY.PROTOCOL", "ssl"},
                    {"BATON_PIPELINE__SOURCE__PROPERTIES__DEBUG", "all"}});
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->sink.headers, (Pairs{{"Authorization", "new"}, {"Accept", "all"}}));
  EXPECT_EQ(config->source.properties, (Pairs{{"security.protocol", "ssl"}, {"debug", "all"}}));
  EXPECT_EQ(refusal("name: a\nsink:\n  headers:\n    Accept: a\n    accept: b\n"),
            "config.yaml:5: sink.headers.accept: is there twice");
}

TEST(PipelineConfig, ThreeLinesMakeItKafkaAndPostgres) {
  const auto config =
      parse_config(example(), "config.yaml",
                   {{"BATON_PIPELINE__SOURCE__URL", "kafka://a:9092,b:9092/orders"},
                    {"BATON_PIPELINE__SINK__URL", "postgres://localhost/orders"},
                    {"BATON_PIPELINE__DEAD_LETTERS__URL", "kafka://a:9092,b:9092/orders-dead"}});
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->source.endpoint.kind_name(), "kafka");
  EXPECT_EQ(config->source.endpoint.address, "a:9092,b:9092");
}

TEST(PipelineConfig, AMistakeIsNamedWithItsLine) {
  EXPECT_EQ(refusal(example_with("# workers: 4 ", "workers: 0 ")).substr(0, 12), "config.yaml:");
  const std::string unknown = refusal(example_with("name: orders\n", "name: orders\nworker: 4\n"));
  EXPECT_EQ(unknown, "config.yaml:5: worker: is unknown");
  EXPECT_NE(refusal(example_with("sqlite:orders.db", "mysql://x")).find("sqlite:PATH"),
            std::string::npos);
  EXPECT_NE(refusal(example_with("baton-stream://127.0.0.1:7470/orders", "baton-stream://host"))
                .find("baton-stream://HOST:PORT/STREAM"),
            std::string::npos);
  EXPECT_NE(refusal(example_with("integer payment.amount", "whole payment.amount")).find("integer"),
            std::string::npos);
  EXPECT_NE(refusal(example_with("key: order_uid", "key: nothing")).find("nothing"),
            std::string::npos);
  EXPECT_EQ(refusal(example(), {{"BATON_PIPELINE__LANES", "many"}}).find("environment"), 0U);
  EXPECT_EQ(refusal(example(), {{"BATON_PIPELINE__LANE", "1"}}),
            "environment BATON_PIPELINE__LANE: is unknown");
}

// Also an error that shows only in combination: two tables, a key and its column.
TEST(PipelineConfig, WhatDoesNotGoTogetherIsNamedWithItsLine) {
  const auto line_of = [](const std::string& text, const std::string& part) {
    return std::to_string(std::ranges::count(text.substr(0, text.find(part)), '\n') + 1);
  };
  const auto expect = [&](const std::string& text, const std::string& part,
                          const std::string& complaint) {
    EXPECT_EQ(refusal(text), "config.yaml:" + line_of(text, part) + ": " + complaint);
  };
  expect(example_with("key: order_uid", "key: nothing"), "key: nothing",
         "key: the idempotency key \"nothing\" must be a column of table orders that is not "
         "optional");
  expect(example_with("name: items", "name: payments  # again"), "name: payments  # again",
         "tables[3].name: table payments: there are two of that name");
  expect(example_with("rows: \"items[]\"", "rows: \"items[\""), "rows: \"items[\"",
         "tables[3].rows: table items: rows: \"items[\" must be names between dots, each with [] "
         "behind it if it is an array");
  expect(example_with("integer items[].sale", "integer others[].sale"), "others[].sale",
         "tables[3].columns.sale: table items: column sale: the path \"others[].sale\" goes "
         "through an array that the table's rows (\"items[]\") do not; is one of them misspelt?");
  expect(example_with("  - name: items", "  - name: more\n    rows: items[]\n  - name: items"),
         "  - name: more", "tables[3].columns: table more: 0 columns; it must be 1 to 256");
  expect(
      example_with("\n# delivery: at_least_once", "\norder: none\ndelivery: exactly_once_effect #"),
      "delivery: exactly", "delivery: exactly_once_effect needs order: key or partition");
  expect(example_with("sqlite:orders.db", "\"stdout:\""), "  - name: orders",
         "tables: tables and key are of sqlite and postgres, not of stdout");
  expect(example_with("  # group:", "  partitions: 2 #"), "  partitions: 2",
         "source.partitions: is of nats, not of baton-stream");
  EXPECT_EQ(refusal(example(), {{"BATON_PIPELINE__KEY", "locales"}})
                .find("environment BATON_PIPELINE__KEY: key: the idempotency key \"locales\""),
            0U);
}

// A value of 0 here would be a pipeline that stands still, or spins.
TEST(PipelineConfig, LowerLimitsAreNamedWithTheirLine) {
  const auto complaint = [](const std::string& path, const std::string& value) {
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos) return refusal("name: a\n" + path + ": " + value + "\n");
    return refusal("name: a\n" + path.substr(0, dot) + ":\n  " + path.substr(dot + 1) + ": " +
                   value + "\n");
  };
  for (const std::string path :
       {"workers", "lanes", "window.records", "window.bytes", "batch.records", "batch.bytes",
        "storm.in_a_row", "storm.of_last", "storm.percent", "source.partitions", "record_max"}) {
    const std::string place = path.contains('.') ? "config.yaml:3: " : "config.yaml:2: ";
    EXPECT_EQ(complaint(path, "0").find(place + path + ": "), 0U) << complaint(path, "0");
  }
  for (const std::string path : {"commit_interval", "retry.first", "retry.most", "probe.first",
                                 "probe.most", "sink.timeout"}) {
    const std::string place = path.contains('.') ? "config.yaml:3: " : "config.yaml:2: ";
    EXPECT_EQ(complaint(path, "0ms").find(place + path + ": "), 0U) << complaint(path, "0ms");
  }
  EXPECT_EQ(refusal(example(), {{"BATON_PIPELINE__BATCH__LINGER", "0ms"},
                                {"BATON_PIPELINE__DRAIN", "0ms"},
                                {"BATON_PIPELINE__MAX_OUTAGE", "0ms"},
                                {"BATON_PIPELINE__RETRY__ATTEMPTS", "0"},
                                {"BATON_PIPELINE__DEAD_LETTERS__REDRIVES_MAX", "0"}}),
            "accepted");
}

TEST(PipelineConfig, UpperLimitsAreNamed) {
  const auto with = [](const std::string& variable, const std::string& value) {
    return refusal(example(), {{"BATON_PIPELINE__" + variable, value}});
  };
  EXPECT_EQ(with("RECORD_MAX", "16MiB"), "accepted");
  EXPECT_EQ(with("RECORD_MAX", "1GiB"),
            "environment BATON_PIPELINE__RECORD_MAX: 1GiB is not 1KiB to 16MiB");
  EXPECT_EQ(with("DRAIN", "1h"), "accepted");
  EXPECT_EQ(with("DRAIN", "13h").find("environment BATON_PIPELINE__DRAIN: "), 0U);
  EXPECT_EQ(with("WINDOW__BYTES", "16GiB"), "accepted");
  EXPECT_EQ(with("WINDOW__BYTES", "17GiB"),
            "environment BATON_PIPELINE__WINDOW__BYTES: 17GiB is not 1KiB to 16384MiB");
}

TEST(PipelineConfig, TheAddressForHttpIsOne) {
  const auto with = [](const std::string& value) {
    return refusal("name: a\nhttp: \"" + value + "\"\n");
  };
  EXPECT_EQ(with("foo"), "config.yaml:2: http: 'foo' is not HOST:PORT, or off");
  EXPECT_EQ(with(":80"), "config.yaml:2: http: ':80' is not HOST:PORT, or off");
  EXPECT_EQ(with("a:b"), "config.yaml:2: http: 'b' is not a whole number from 0 to 65535, or off");
  EXPECT_EQ(with("127.0.0.1:0"), "config.yaml: source.url is missing: where records come from");
  EXPECT_EQ(with("[::1]:7472"), with("off"));
}

TEST(PipelineConfig, AMistakeWithoutAValueIsNamed) {
  const auto with = [](const std::string& line) {
    return refusal(example_with("name: orders\n", "name: orders\n" + line + "\n"));
  };
  EXPECT_EQ(with("worker:"), "config.yaml:5: worker: is unknown");
  EXPECT_EQ(with("batchh: {}"), "config.yaml:5: batchh: is unknown");
  EXPECT_EQ(with("table: []"), "config.yaml:5: table: is unknown");
  EXPECT_EQ(with("batch: {record: }"), "config.yaml:5: batch.record: is unknown");
  EXPECT_EQ(with("workers:\nbatch:\nretry: {attempts: }\nstorm: {}"), "accepted");
  EXPECT_EQ(refusal(example_with("  url: sqlite", "  headers:\n  url: sqlite")), "accepted");
  // A column would be missing then.
  EXPECT_NE(refusal(example_with("\"integer payment.amount\"", "")).find("amount: is empty"),
            std::string::npos);
}

TEST(PipelineConfig, WhatIsMissingIsNamed) {
  EXPECT_EQ(refusal("http: off\n"), "config.yaml: name is missing");
  EXPECT_EQ(refusal("{}"), "config.yaml: name is missing");
  EXPECT_NE(refusal("name: a\n").find("source.url is missing"), std::string::npos);
  EXPECT_NE(refusal(example_with("schema: builtin:orders", "")).find("schema is missing"),
            std::string::npos);
  EXPECT_NE(refusal(example_with("\nkey: order_uid", "")).find("key is missing"),
            std::string::npos);
}

TEST(PipelineConfig, WhatDoesNotGoTogetherIsRefused) {
  const Environment exactly{{"BATON_PIPELINE__DELIVERY", "exactly_once_effect"}};
  EXPECT_EQ(refusal(example(), exactly), "accepted");
  EXPECT_EQ(refusal(example_with("\nkey: order_uid", ""), exactly), "accepted");
  const auto with = [&](const std::string& name, const std::string& value) {
    Environment environment = exactly;
    environment["BATON_PIPELINE__" + name] = value;
    return refusal(example(), environment);
  };
  EXPECT_NE(with("SOURCE__URL", "baton-queue://a:1/q").find("baton-queue does not have"),
            std::string::npos);
  EXPECT_NE(with("ORDER", "none").find("order: key or partition"), std::string::npos);
  EXPECT_NE(with("ON_DUPLICATE", "dead_letter").find("on_duplicate"), std::string::npos);
  EXPECT_NE(refusal(example(), {{"BATON_PIPELINE__SINK__URL", "stdout:"}}).find("tables and key"),
            std::string::npos);
  EXPECT_NE(refusal(example(), {{"BATON_PIPELINE__SOURCE__URL", "nats://a:1/S/s.{partition}"}})
                .find("source.partitions is missing"),
            std::string::npos);
  EXPECT_NE(refusal(example(), {{"BATON_PIPELINE__SOURCE__PROPERTIES__X", "1"}})
                .find("source.properties: is of kafka"),
            std::string::npos);
}

TEST(PipelineConfig, MembersOfAKafkaGroup) {
  const auto with = [](const std::string& name, const std::string& value,
                       const std::string& source = "kafka://a:1/t") {
    return refusal(example(),
                   {{"BATON_PIPELINE__SOURCE__URL", source}, {"BATON_PIPELINE__" + name, value}});
  };
  EXPECT_EQ(with("SOURCE__SESSION_TIMEOUT", "6s"), "accepted");
  EXPECT_NE(with("SOURCE__SESSION_TIMEOUT", "10ms").find("SESSION_TIMEOUT: "), std::string::npos);
  EXPECT_NE(with("SOURCE__SESSION_TIMEOUT", "1h").find("SESSION_TIMEOUT: "), std::string::npos);
  EXPECT_EQ(with("ID", "host-1.a_b"), "accepted");
  EXPECT_NE(with("ID", "a/b").find("letters, digits and . _ -"), std::string::npos);
  EXPECT_NE(with("ID", "").find("ID: "), std::string::npos);
  EXPECT_NE(with("ID", "one", "baton-stream://a:1/s").find("id: is of kafka"), std::string::npos);
  EXPECT_NE(with("SOURCE__SESSION_TIMEOUT", "9s", "baton-stream://a:1/s")
                .find("source.session_timeout: is of kafka"),
            std::string::npos);
}

TEST(PipelineConfig, LimitsThatContradictEachOther) {
  const auto with = [](const std::string& name, const std::string& value, const std::string& other,
                       const std::string& other_value) {
    return refusal(example(),
                   {{"BATON_PIPELINE__" + name, value}, {"BATON_PIPELINE__" + other, other_value}});
  };
  EXPECT_EQ(with("BATCH__RECORDS", "200", "WINDOW__RECORDS", "100"),
            "environment BATON_PIPELINE__BATCH__RECORDS: batch.records: 200 is more than "
            "window.records, 100: no batch would ever be full");
  EXPECT_EQ(with("WORKERS", "2", "WINDOW__RECORDS", "100"), "accepted");
  EXPECT_EQ(
      with("PROBE__FIRST", "2s", "PROBE__MOST", "1s"),
      "environment BATON_PIPELINE__PROBE__FIRST: probe.first: 2s is more than probe.most, 1s");
  EXPECT_NE(with("RETRY__FIRST", "2s", "RETRY__MOST", "1s").find("retry.first: 2s is more"),
            std::string::npos);
}

TEST(PipelineConfig, AnAddressHasAPort) {
  for (const char* url : {"baton-stream://127.0.0.1/s", "kafka://a:1,b/t", "nats://a/S/s"}) {
    EXPECT_NE(refusal(example(), {{"BATON_PIPELINE__SOURCE__URL", url}}).find("is not HOST:PORT"),
              std::string::npos)
        << url;
  }
}

// Each dead letter would come back as a record that cannot be written.
TEST(PipelineConfig, DeadLettersDoNotGoToTheSource) {
  const auto with = [](const std::string& source, const std::string& letters) {
    return refusal(example(), {{"BATON_PIPELINE__SOURCE__URL", source},
                               {"BATON_PIPELINE__DEAD_LETTERS__URL", letters}});
  };
  const std::string refused =
      "environment BATON_PIPELINE__DEAD_LETTERS__URL: dead_letters.url: is the source itself: what "
      "cannot be written would come again, for ever";
  EXPECT_EQ(with("baton-queue://a:1/q", "baton-queue://a:1/q"), refused);
  EXPECT_EQ(with("baton-queue://localhost:1/q", "baton-queue://127.0.0.1:1/q"), refused);
  EXPECT_EQ(with("kafka://a:1,b:1/t", "kafka://b:1,c:1/t"), refused);
  EXPECT_EQ(with("baton-queue://a:1/q", "baton-queue://a:1/q.dlq"), "accepted");
  EXPECT_EQ(with("baton-queue://a:1/q", "baton-queue://a:2/q"), "accepted");
  EXPECT_EQ(with("kafka://a:1,b:1/t", "kafka://c:1/t"), "accepted");
  EXPECT_EQ(with("baton-stream://a:1/q", "baton-queue://a:1/q"), "accepted");
}

TEST(PipelineConfig, TlsAndLoginsHaveSettings) {
  const auto config = parse_config(example(), "config.yaml",
                                   {{"BATON_PIPELINE__SOURCE__URL", "kafkas://a:1,b:2/orders"},
                                    {"BATON_PIPELINE__SOURCE__TLS__CA", "ca.pem"},
                                    {"BATON_PIPELINE__SOURCE__LOGIN__USER", "ann"},
                                    {"BATON_PIPELINE__SOURCE__LOGIN__PASSWORD", "secret"},
                                    {"BATON_PIPELINE__SOURCE__LOGIN__MECHANISM", "SCRAM-SHA-256"},
                                    {"BATON_PIPELINE__DEAD_LETTERS__LOGIN__TOKEN_FILE", "token"}});

  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_TRUE(config->source.endpoint.tls);
  EXPECT_EQ(config->source.endpoint.kind_name(), "kafka");
  EXPECT_EQ(config->source.security, (secure::Settings{.files = {.ca_file = "ca.pem"},
                                                       .user = "ann",
                                                       .mechanism = "SCRAM-SHA-256",
                                                       .password = "secret"}));
  EXPECT_EQ(config->dead_letters.security.token_file, "token");
  EXPECT_FALSE(config->dead_letters.endpoint.tls);
}

TEST(PipelineConfig, EverySchemeHasOneWithTls) {
  const auto kind = [](const std::string& url) {
    const auto endpoint = parse_source_url(url);
    return endpoint.has_value() ? fmt::format("{} {}", endpoint->kind_name(), endpoint->tls)
                                : endpoint.error().text;
  };
  EXPECT_EQ(kind("baton://a:1/s"), "baton-stream false");
  EXPECT_EQ(kind("batons://a:1/s"), "baton-stream true");
  EXPECT_EQ(kind("batons-stream://a:1/s"), "baton-stream true");
  EXPECT_EQ(kind("batons-queue://a:1/q"), "baton-queue true");
  EXPECT_EQ(kind("kafkas://a:1/t"), "kafka true");
  EXPECT_EQ(kind("natss://a:1/S/s"), "nats true");
  EXPECT_EQ(kind("tls://a:1/S/s"), "nats true");
  EXPECT_EQ(kind("batons-stream://a:1"),
            "'batons-stream://a:1' is not batons-stream://HOST:PORT/STREAM");
  EXPECT_EQ(kind("batons-stream://a/s"),
            "'a' is not HOST:PORT; the form is batons-stream://HOST:PORT/STREAM");
}

// Files and logs are read by many people.
TEST(PipelineConfig, ASecretHasNoPlaceInTheFileAndNoneInAnError) {
  const std::string text =
      example_with("source:\n", "source:\n  login: { user: ann, password: MARKED }\n");
  EXPECT_EQ(refusal(text).substr(refusal(text).find("source")),
            "source.login.password: has no place in the file: name a password_file, or set "
            "BATON_PIPELINE__SOURCE__LOGIN__PASSWORD");
  for (const char* url : {"nats://me:MARKED@a:1/S/s.{partition}", "kafka://me:MARKED@a:1/t",
                          "kafkaz://me:MARKED@a:1/t", "baton-stream://me:MARKED@a:1"}) {
    const std::string said = refusal(example(), {{"BATON_PIPELINE__SOURCE__URL", url}});
    EXPECT_NE(said, "accepted");
    EXPECT_EQ(said.find("MARKED"), std::string::npos) << said;
  }
}

TEST(PipelineConfig, ABrokerHasNoLoginsAndDeadLettersAreReachedAsTheSource) {
  const auto load = [](const Environment& environment) -> std::string {
    auto config = parse_config(example(), "config.yaml", environment);
    if (!config.has_value()) return config.error().text;
    const Status loaded = load_security(*config, [](const char*) { return std::nullopt; });
    if (!loaded.has_value()) return loaded.error().text;
    return config->dead_letters.endpoint.security.tls.has_value() ? "tls" : "plain";
  };
  EXPECT_EQ(load({}), "plain");
  EXPECT_EQ(load({{"BATON_PIPELINE__SOURCE__TLS__SERVER_NAME", "a.example"}}), "tls");
  EXPECT_EQ(load({{"BATON_PIPELINE__SOURCE__LOGIN__USER", "ann"}}),
            "environment BATON_PIPELINE__SOURCE__LOGIN__USER: source.login: a Baton broker has no "
            "logins: it knows clients by their certificates");
}

TEST(PipelineConfig, AReloadTakesOnlyWhatCanChange) {
  const auto running = parse_config(example(), "config.yaml", {});
  ASSERT_TRUE(running.has_value());
  const auto reload = [&](const Environment& environment) {
    const auto fresh = parse_config(example(), "config.yaml", environment);
    EXPECT_TRUE(fresh.has_value());
    const Status status = check_reload(*running, *fresh);
    return status.has_value() ? "taken" : status.error().text;
  };
  EXPECT_EQ(reload({}), "taken");
  EXPECT_EQ(reload({{"BATON_PIPELINE__BATCH__RECORDS", "10"},
                    {"BATON_PIPELINE__MAX_OUTAGE", "1m"},
                    {"BATON_PIPELINE__STORM__PERCENT", "50"}}),
            "taken");
  EXPECT_EQ(reload({{"BATON_PIPELINE__LANES", "9"}}),
            "lanes cannot change while the pipeline runs: restart it");
  EXPECT_EQ(reload({{"BATON_PIPELINE__SINK__URL", "sqlite:other.db"}}),
            "sink.url cannot change while the pipeline runs: restart it");
}

}  // namespace
}  // namespace baton::pipeline
