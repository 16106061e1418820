// The same pipeline with other ends: a queue or NATS as source, HTTP or standard output as sink,
// and dead letters that are sent back.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "e2e/broker_process.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"
#include "stores/server.h"

namespace baton::pipeline {
namespace {

using e2e::BrokerProcess;
using e2e::eventually;
using e2e::seconds;
using orders::OrderFate;

class OtherEnds : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream("orders").create(4).has_value());
  }
  /// For a sink that is not a database.
  static void leave_out_tables(const PipelineFolder& folder) {
    std::string config = e2e::read_file(folder.config());
    config.erase(config.find("\nkey: order_uid"));
    e2e::write_file(folder.config(), config);
  }
  static nlohmann::json generate(const std::string& target, int count,
                                 const std::string& partitions = "",
                                 const std::string& seed = "1") {
    std::vector<std::string> command{
        e2e::binary(),         "pipeline",  "generate", "orders",   "--count",
        std::to_string(count), "--invalid", "2%",       "--broken", "1%",
        "--duplicate",         "2%",        "--json",   "--to",     target};
    command.insert(command.end(), {"--seed", seed});
    if (!partitions.empty()) command.insert(command.end(), {"--partitions", partitions});
    const auto result = e2e::run_command(std::move(command));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
  /// The tables and the dead letters hold what the generator says.
  void expect_counts(const PipelineFolder& folder, const nlohmann::json& made) {
    const Outcome outcome = read_sqlite(folder.database());
    EXPECT_EQ(outcome.rows.size(), made["valid"].get<std::size_t>());
    EXPECT_EQ(outcome.orphans, 0U);
    EXPECT_EQ(broker_.depth("orders.dlq"),
              made["invalid"].get<std::size_t>() + made["broken"].get<std::size_t>());
  }

  BrokerProcess broker_;
};

TEST_F(OtherEnds, FromAQueue) {
  client::QueueSettings settings;
  settings.attempts_max = 0;
  broker_.create("incoming", settings);
  const std::string url = "baton-queue://" + broker_.address() + "/incoming";
  const PipelineFolder folder(broker_, {{"source.url", url}});
  const nlohmann::json made = generate(url, 3000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 3000; })) << pipeline.log();
  EXPECT_EQ(pipeline.counter("duplicates"), made["duplicate"].get<std::uint64_t>());
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  EXPECT_EQ(broker_.depth("incoming"), 0U);
  expect_counts(folder, made);
}

TEST_F(OtherEnds, FromAQueueKilledAgainAndAgain) {
  client::QueueSettings settings;
  settings.attempts_max = 0;
  broker_.create("incoming", settings);
  const std::string url = "baton-queue://" + broker_.address() + "/incoming";
  const PipelineFolder folder(broker_, {{"source.url", url}, {"batch.records", "20"}});
  nlohmann::json made{{"valid", 0}, {"invalid", 0}, {"broken", 0}};
  for (int life = 1; life <= 4; ++life) {
    // New records for each life: the one before may have processed all.
    const nlohmann::json more = generate(url, 1500, "", std::to_string(life));
    for (auto& [fate, count] : made.items()) count = count.get<int>() + more[fate].get<int>();
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return pipeline.ended() > 200; })) << pipeline.log();
    pipeline.kill();
  }
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return broker_.depth("incoming") == 0; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_counts(folder, made);
}

TEST_F(OtherEnds, FromNats) {
  const stores::ServerOptions kind{.kind = stores::Kind::nats};
  if (const std::string why = stores::Server::missing(kind); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    GTEST_SKIP() << why;
  }
  stores::Server nats(kind);
  ASSERT_TRUE(nats.start());
  const std::string address = nats.member(0).address();
  const std::string url = "nats://" + address + "/ORDERS/orders.{partition}";
  // Without a stream there is nothing to read, and that is reported.
  const PipelineFolder folder(broker_, {{"source.url", url}, {"source.partitions", "3"}});
  const auto refused = folder.check();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("ORDERS"), std::string::npos) << refused.err;
  make_nats_stream(address);
  const nlohmann::json made = generate(url, 3000, "3");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 3000; }, seconds{60})) << pipeline.log();
  EXPECT_EQ(pipeline.counter("duplicates"), made["duplicate"].get<std::uint64_t>());
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  expect_counts(folder, made);
}

TEST_F(OtherEnds, ToStandardOutput) {
  const PipelineFolder folder(broker_, {{"sink.url", "stdout:"}});
  leave_out_tables(folder);
  const nlohmann::json made = generate("baton://" + broker_.address() + "/orders", 500);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 500; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  std::set<std::string> orders;
  std::istringstream lines(pipeline.out());
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object() && json.contains("order_uid")) << line;
    orders.insert(json["order_uid"]);
  }
  EXPECT_NE(pipeline.log().find("orders: drained: "), std::string::npos) << pipeline.log();
  EXPECT_EQ(orders.size(), made["valid"].get<std::size_t>());
}

// The output holds nothing but the records.
TEST_F(OtherEnds, GeneratedToStandardOutput) {
  const auto result = e2e::run_command(
      {e2e::binary(), "pipeline", "generate", "orders", "--count", "20", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 20) << result.out;
  EXPECT_EQ(nlohmann::json::parse(result.err, nullptr, false)["valid"], 20) << result.err;
}

/// Answers POSTs as it is told to, and remembers what it accepted.
class Receiver {
 public:
  Receiver() {
    server_.Post("/orders", [this](const httplib::Request& request, httplib::Response& response) {
      const std::scoped_lock lock(mutex_);
      const std::string key = request.get_header_value("Idempotency-Key");
      times_.push_back(e2e::Clock::now());
      response.status = answer_to(request);
      if (response.status == 429) response.set_header("Retry-After", "1");
      if (response.status == 200) ++taken_[key];
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Receiver() { server_.stop(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/orders";
  }
  void answer(int status) {
    const std::scoped_lock lock(mutex_);
    status_ = status;
  }
  std::size_t taken() {
    const std::scoped_lock lock(mutex_);
    return taken_.size();
  }
  std::vector<e2e::Clock::time_point> times() {
    const std::scoped_lock lock(mutex_);
    return times_;
  }

 private:
  int answer_to(const httplib::Request& request) const {
    const bool is_order = nlohmann::json::accept(request.body);
    if (status_ != 200 || !is_order) return is_order ? status_ : 500;
    // Some are refused, some are duplicates, some meet an overload.
    const auto hash = std::hash<std::string>()(request.get_header_value("Idempotency-Key"));
    return hash % 50 == 0 ? 422 : hash % 50 == 1 ? 409 : hash % 50 == 2 ? 500 : 200;
  }

  httplib::Server server_;
  int port_ = 0;
  std::mutex mutex_;
  int status_ = 200;
  std::map<std::string, int> taken_;
  std::vector<e2e::Clock::time_point> times_;
  std::jthread thread_;
};

TEST_F(OtherEnds, ToHttp) {
  Receiver receiver;
  const PipelineFolder folder(broker_, {{"sink.url", receiver.url()}});
  leave_out_tables(folder);
  generate("baton://" + broker_.address() + "/orders", 500);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 500; })) << pipeline.log();
  EXPECT_GT(pipeline.counter("duplicates"), 0U);
  EXPECT_EQ(receiver.taken(), pipeline.counter("applied"));
  // Overload and outage are waited for, a refusal of all requests halts it; none of them makes dead
  // letters.
  for (const auto& [status, state] : {std::pair{503, "open"}, {429, "open"}, {401, "halted"}}) {
    receiver.answer(status);
    const std::uint64_t letters = broker_.depth("orders.dlq");
    const std::uint64_t before = pipeline.ended();
    const auto sent = e2e::run_command({e2e::binary(), "pipeline", "generate", "orders", "--count",
                                        "20", "--seed", std::to_string(status), "--to",
                                        "baton://" + broker_.address() + "/orders"});
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
    EXPECT_TRUE(eventually([&] { return pipeline.breaker() == state; }, seconds{30}))
        << status << pipeline.log();
    EXPECT_EQ(broker_.depth("orders.dlq"), letters) << status;
    receiver.answer(200);
    if (status == 401) pipeline.signal(SIGHUP);
    EXPECT_TRUE(eventually([&] { return pipeline.ended() == before + 20; }, seconds{30}))
        << status << pipeline.log();
  }
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// First by retries while attempts last, and then by the breaker, whose probes are all answered.
TEST_F(OtherEnds, AReceiverThatAsksForTimeGetsIt) {
  Receiver receiver;
  receiver.answer(429);  // "Retry-After: 1".
  const PipelineFolder folder(
      broker_, {{"sink.url", receiver.url()}, {"lanes", "1"}, {"retry.attempts", "1"}});
  leave_out_tables(folder);
  generate("baton://" + broker_.address() + "/orders", 100);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return receiver.times().size() >= 4; })) << pipeline.log();
  const auto times = receiver.times();
  for (std::size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], e2e::milliseconds{950}) << i;
  }
  EXPECT_EQ(pipeline.breaker(), "open");
  receiver.answer(200);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 100; })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// A crash has left half a dead letter. It is ignored: its record comes again, and so does its
// letter.
TEST_F(OtherEnds, HalfALetterInAFileIsNotContinued) {
  const PipelineFolder folder(broker_,
                              {{"dead_letters.url", "file:dead.jsonl"}, {"batch.records", "20"}});
  const std::string file = folder.folder() / "dead.jsonl";
  std::uint64_t poison = 0;
  const auto send = [&](int count, const std::string& seed) {
    const nlohmann::json made =
        generate("baton://" + broker_.address() + "/orders", count, "", seed);
    poison += made["invalid"].get<std::uint64_t>() + made["broken"].get<std::uint64_t>();
  };
  send(2000, "1");
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.counter("dead_letters") > 5; })) << pipeline.log();
  pipeline.kill();
  const std::string half = e2e::read_file(file).substr(0, 100);  // As the first one begins.
  e2e::write_file(file, e2e::read_file(file) + half);
  send(500, "2");
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] {
    std::int64_t sum = 0;
    for (const auto& [partition, next] : stored_offsets(broker_, "orders", "orders")) sum += next;
    return sum == 2500;
  })) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  std::set<std::string> ids;
  std::vector<std::string> torn;
  std::istringstream lines(e2e::read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) {
      ids.insert(json["id"].get<std::string>());
    } else {
      torn.push_back(line);
    }
  }
  EXPECT_EQ(ids.size(), poison);
  EXPECT_EQ(torn, std::vector{half});
}

// In an outage nothing more is read, and the lag matters most.
TEST_F(OtherEnds, TheLagGrowsInAnOutage) {
  Receiver receiver;
  receiver.answer(503);
  const PipelineFolder folder(broker_, {{"sink.url", receiver.url()}, {"window.records", "10"}});
  std::string config = e2e::read_file(folder.config());
  config.erase(config.find("\nkey: order_uid"));
  e2e::write_file(folder.config(), config);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  const std::string stream = "baton://" + broker_.address() + "/orders";
  generate(stream, 100);
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "open"; })) << pipeline.log();
  generate(stream, 300);
  EXPECT_TRUE(eventually([&] { return pipeline.status()["lag"] == 400; })) << pipeline.status();
  receiver.answer(200);
  EXPECT_TRUE(eventually([&] { return pipeline.status()["lag"] == 0; })) << pipeline.status();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// Once the fault is repaired, the dead letters are sent back and tried again: once, and not for
// ever.
TEST_F(OtherEnds, DeadLettersGoBack) {
  const PipelineFolder folder(broker_, {{"dead_letters.redrives_max", "2"}});
  const nlohmann::json made = generate("baton://" + broker_.address() + "/orders", 2000);
  const std::uint64_t poison =
      made["invalid"].get<std::uint64_t>() + made["broken"].get<std::uint64_t>();
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 2000; })) << pipeline.log();
  const auto dlq = [&](std::vector<std::string> arguments) {
    std::vector<std::string> command{e2e::binary(), "pipeline", "dlq"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--config", folder.config(), "--json"});
    return e2e::run_command(command, {.environment = folder.environment()});
  };
  const auto redrive = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"redrive", "orders"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = dlq(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  };
  EXPECT_EQ(redrive({"--dry-run"})["redriven"], poison);
  EXPECT_EQ(broker_.depth("orders.dlq"), poison);
  EXPECT_EQ(redrive({"--where", "stage=decode", "--limit", "5"})["redriven"], 5);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 2005; })) << pipeline.log();
  EXPECT_EQ(broker_.depth("orders.dlq"), poison);  // Still broken: they are back.
  EXPECT_EQ(redrive({})["redriven"], poison);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 2005 + poison; })) << pipeline.log();
  // The five have been sent back twice by now.
  const nlohmann::json third = redrive({});
  EXPECT_EQ(third["redriven"], poison - 5);
  EXPECT_EQ(third["redriven_too_often"], 5);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 2000 + 2 * poison; })) << pipeline.log();
  EXPECT_EQ(redrive({})["redriven_too_often"], poison);
  const auto listed = dlq({"ls", "orders", "--limit", "1"});
  EXPECT_EQ(nlohmann::json::parse(listed.out)["redrives"], 2) << listed.out;
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// `check` changes nothing.
TEST_F(OtherEnds, CheckMakesNoDeadLetters) {
  const PipelineFolder folder(broker_);
  const auto queues = [&] {
    return e2e::run_command({e2e::binary(), "queue", "list", "--address", broker_.address()}).out;
  };
  EXPECT_NE(folder.check().out.find("would create the queue orders.dlq\n"), std::string::npos);
  EXPECT_EQ(queues().find("orders.dlq"), std::string::npos) << queues();
  EXPECT_NE(folder.check({"--apply"}).out.find("created the queue orders.dlq\n"),
            std::string::npos);
  EXPECT_NE(queues().find("orders.dlq"), std::string::npos) << queues();
  EXPECT_EQ(folder.check().out.find("would"), std::string::npos) << folder.check().out;

  const std::string letters = folder.folder() / "letters";
  const PipelineFolder other(broker_, {{"dead_letters.url", "file:" + letters}});
  EXPECT_NE(other.check().out.find("would create the file " + letters + "\n"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(letters));
  EXPECT_NE(other.check({"--apply"}).out.find("created the file " + letters), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(letters));
  EXPECT_EQ(other.check({"--apply"}).out.find("created"), std::string::npos);
  const PipelineFolder nowhere(broker_, {{"dead_letters.url", "file:no/such/folder/letters"}});
  for (const auto& result : {nowhere.check(), nowhere.check({"--apply"})}) {
    EXPECT_NE(result.exit_code, 0) << result.out;
    EXPECT_NE(result.err.find("letters: No such file or directory"), std::string::npos)
        << result.err;
  }
}

// A user need not wait for a broker that does not answer.
TEST_F(OtherEnds, TheSecondSignalEndsIt) {
  const PipelineFolder folder(broker_);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  broker_.pause();
  std::optional<int> code;
  EXPECT_TRUE(eventually([&] {
    pipeline.signal(SIGTERM);
    code = pipeline.wait(seconds{0});
    return code.has_value();
  }));
  EXPECT_EQ(code, 128 + SIGTERM) << pipeline.log();
  broker_.signal(SIGCONT);
}

/// What `promtool check metrics` asks for.
void expect_help_for_each(const std::string& metrics) {
  std::istringstream lines(metrics);
  std::string help;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string sign;
    std::string kind;
    std::string name;
    words >> sign >> kind >> name;
    if (sign == "#" && kind == "HELP") help = name;
    if (sign == "#" && kind == "TYPE") {
      EXPECT_EQ(name, help) << line;
    }
    if (sign != "#") {
      EXPECT_TRUE(line.starts_with(help + "{")) << line;
    }
  }
}

TEST_F(OtherEnds, IsSeen) {
  const PipelineFolder folder(broker_);
  generate("baton://" + broker_.address() + "/orders", 1000);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1000; })) << pipeline.log();
  EXPECT_TRUE(eventually([&] {
    const nlohmann::json status = pipeline.status();
    return status["lag"] == 0 && status["partitions"].size() == 4 && status["ready"] == true;
  }));
  // There is nothing to do, so there is no estimate of the end.
  EXPECT_FALSE(pipeline.status().contains("eta_seconds"));
  const std::string metrics = pipeline.get("/metrics").second;
  for (const char* line :
       {"baton_pipeline_received_total{pipeline=\"orders\"} 1000",
        "baton_pipeline_breaker{pipeline=\"orders\",state=\"closed\"} 1",
        "baton_pipeline_lag_records{pipeline=\"orders\",partition=\"3\"} 0",
        "baton_pipeline_gaps{pipeline=\"orders\",partition=\"3\"} 0",
        "# TYPE baton_pipeline_highest_done_offset gauge",
        "baton_pipeline_ready{pipeline=\"orders\"} 1", "# HELP baton_pipeline_records_per_second ",
        "baton_pipeline_sink_errors_total{pipeline=\"orders\",class=\"outage\"} 0"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
  }
  for (const std::string path : {"/healthz", "/readyz"}) {
    EXPECT_EQ(pipeline.get(path), std::pair(200, std::string("ok\n")));
  }
  expect_help_for_each(metrics);
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

}  // namespace
}  // namespace baton::pipeline
