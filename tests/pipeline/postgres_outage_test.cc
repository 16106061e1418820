#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/tcp_proxy.h"
#include "pipeline/postgres_fixture.h"

// PostgreSQL becomes unavailable in every possible way. Each time: an outage, within a bounded
// time, and the same writer continues once it is back.
namespace baton::pipeline {
namespace {

using flow::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::seconds;

class PostgresOutageTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sink_ = ready_sink([](PostgresSinkOptions& options) {
      options.statement_timeout = seconds(3);
      options.connect_timeout = seconds(2);
    });
    writer_ = sink_->writer(0);
    Items items = orders(0, 10);
    ASSERT_EQ(name_of(writer_->write(items)), "none");
  }

  /// Takes no longer than the timeouts and the margin.
  void expect_outage(const std::function<MaybeError()>& act,
                     const std::optional<std::string>& code) {
    const auto begin = e2e::Clock::now();
    const MaybeError error = act();
    EXPECT_LT(e2e::Clock::now() - begin, seconds(15));
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->error_class, ErrorClass::outage) << name_of(error);
    EXPECT_EQ(error->code, code.value_or(error->code)) << name_of(error);
    EXPECT_FALSE(error->text.empty());
  }
  void expect_outage(Items& items, const std::optional<std::string>& code) {
    expect_outage([&] { return writer_->write(items); }, code);
    EXPECT_EQ(count_of(items, Fate::open), items.size());
  }
  /// All of `items`, and what was there before.
  void expect_works(Items& items) {
    EXPECT_EQ(name_of(writer_->write(items)), "none");
    EXPECT_EQ(count_of(items, Fate::applied), items.size());
    EXPECT_EQ(count("orders"), 10 + static_cast<std::int64_t>(items.size()));
    EXPECT_EQ(count("items"), items_of(orders(0, 10)) + items_of(items));
    EXPECT_EQ(name_of(sink_->probe()), "none");
  }

  std::unique_ptr<PostgresSink> sink_;
  std::unique_ptr<LaneWriter> writer_;
};

TEST_F(PostgresOutageTest, ATerminatedBackend) {
  ASSERT_EQ(name_of(sink_->probe()), "none");
  server().terminate_backends();
  Items items = orders(10, 50);
  expect_outage(items, "57P01");
  expect_works(items);
}

TEST_F(PostgresOutageTest, ABackendThatIsTerminatedAtWork) {
  PostgresSession other(server().url());
  ASSERT_EQ(other.run("BEGIN; LOCK TABLE items"), "");
  Items items = orders(10, 50);
  std::thread thread([&] { expect_outage(items, "57P01"); });
  EXPECT_TRUE(e2e::eventually([&] { return count("pg_locks WHERE NOT granted") > 0; }));
  server().query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
  thread.join();
  ASSERT_EQ(other.run("ROLLBACK"), "");
  EXPECT_EQ(count("orders"), 10);
  expect_works(items);
}

TEST_F(PostgresOutageTest, AnImmediateStop) {
  server().stop_immediate();
  Items items = orders(10, 50);
  expect_outage(items, std::nullopt);  // It may have sent an error as it ended.
  expect_outage(items, "");            // Refused.
  expect_outage([&] { return sink_->probe(); }, "");
  ASSERT_TRUE(server().start());
  expect_works(items);
}

TEST_F(PostgresOutageTest, AFastStop) {
  server().stop_fast();
  Items items = orders(10, 50);
  expect_outage(items, "57P01");
  expect_outage(items, "");
  ASSERT_TRUE(server().start());
  expect_works(items);
}

// There is no answer: libpq has no SQLSTATE to report.
TEST_F(PostgresOutageTest, AKilledServer) {
  server().kill();
  Items items = orders(10, 50);
  expect_outage(items, "");
  ASSERT_TRUE(server().start());
  expect_works(items);
}

// It accepts connections and answers nothing, like a server whose disk hangs.
TEST_F(PostgresOutageTest, AServerThatIsStopped) {
  ASSERT_EQ(name_of(sink_->probe()), "none");
  server().pause();
  Items items = orders(10, 50);
  expect_outage(items, "");                           // On an existing connection.
  expect_outage(items, "");                           // On a new one.
  expect_outage([&] { return sink_->probe(); }, "");  // The same for the probe.
  expect_outage([&] { return sink_->probe(); }, "");
  server().resume();
  // What was sent before may be stored by now: then the replay is recognised.
  expect_works(items);
}

// More than the buffers of both ends can hold: the sending itself does not end.
TEST_F(PostgresOutageTest, AServerThatIsStoppedAndDoesNotRead) {
  Items items;
  for (std::int64_t number = 10; number < 30; ++number) {
    auto order = nlohmann::json::parse(bytes(static_cast<std::uint64_t>(number)));
    order["delivery"]["address"] = std::string(900'000, 'x');
    items.push_back(item_of(order.dump(), number));
  }
  server().pause();
  expect_outage(items, "");
  server().resume();
  expect_works(items);
}

TEST_F(PostgresOutageTest, AReadOnlyDatabase) {
  server().set_read_only(true);
  Items items = orders(10, 50);
  // An existing session notices a little later.
  expect_outage([&] { return sink_->writer(1)->write(items); }, "25006");
  server().set_read_only(false);
  EXPECT_TRUE(e2e::eventually([&] { return !writer_->write(items).has_value(); }));
  expect_works(items);
}

TEST_F(PostgresOutageTest, TooManyConnections) {
  std::vector<std::unique_ptr<PostgresSession>> sessions;
  for (int i = 0; i < 45; ++i) {
    sessions.push_back(std::make_unique<PostgresSession>(server().url()));
  }
  Items items = orders(10, 50);
  expect_outage([&] { return sink_->writer(1)->write(items); }, "53300");
  sessions.clear();
  expect_works(items);
}

// An operator allows no connections: 55000, which elsewhere has nothing to do with connections.
TEST_F(PostgresOutageTest, ADatabaseThatLetsNobodyIn) {
  ASSERT_EQ(name_of(sink_->probe()), "none");
  const auto let_in = [&](bool in) {
    PostgresSession operator_of(server().url("template1"));
    ASSERT_EQ(operator_of.run(fmt::format("ALTER DATABASE postgres ALLOW_CONNECTIONS {}", in)), "");
    ASSERT_EQ(operator_of.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                              "WHERE datname = 'postgres'"),
              "");
  };
  let_in(false);
  Items items = orders(10, 50);
  expect_outage(items, "57P01");
  expect_outage(items, "55000");
  expect_outage([&] { return sink_->probe(); }, "55000");
  let_in(true);
  expect_works(items);
}

TEST_F(PostgresOutageTest, AnAnswerThatIsLost) {
  e2e::TcpProxy proxy(server().port());
  const auto sink = make_sink(
      [&](PostgresSinkOptions& options) { options.url = PostgresServer::url_at(proxy.port()); });
  writer_ = sink->writer(0);
  Items warm = orders(10, 1);
  ASSERT_EQ(name_of(writer_->write(warm)), "none");
  Items items = orders(10, 50);

  proxy.swallow_answers();
  std::thread thread([&] { expect_outage(items, ""); });
  EXPECT_TRUE(e2e::eventually([&] { return count("orders") == 60; }));
  proxy.reset();
  thread.join();

  EXPECT_EQ(count("orders"), 60);
  expect_works(items);
}

}  // namespace
}  // namespace baton::pipeline
