// An order pipeline into SQLite with dead letters in a file, by the command line; and dead letters
// that cannot be written.
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include <baton/broker.h>
#include <baton/stream_producer.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "e2e/broker_process.h"
#include "pipeline/baton/queue_dead_letters.h"
#include "pipeline/letters.h"
#include "pipeline/local/file_dead_letters.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;
using orders::OrderFate;

class DeadLetters : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client->stream("orders").create(2).has_value());
    folder_ = std::make_unique<PipelineFolder>(broker_);
    file_ = folder_->folder() / "dead.jsonl";
    folder_->settings()["dead_letters.url"] = "file:" + file_;
  }
  std::vector<std::string> command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {e2e::binary(), "pipeline", "dlq"});
    arguments.insert(arguments.end(), {"--config", folder_->config()});
    return arguments;
  }
  e2e::CommandResult dlq(const std::vector<std::string>& arguments) const {
    return e2e::run_command(command(arguments), {.environment = folder_->environment()});
  }
  nlohmann::json redrive(std::vector<std::string> more) const {
    more.insert(more.begin(), {"redrive", "orders", "--json"});
    const auto result = dlq(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
  std::int64_t lines() const { return std::ranges::count(e2e::read_file(file_), '\n'); }

  e2e::BrokerProcess broker_;
  std::unique_ptr<PipelineFolder> folder_;
  std::string file_;
};

TEST_F(DeadLetters, InAFileGoBackByTheCommandLine) {
  folder_->settings()["dead_letters.redrives_max"] = "2";
  Inventory inventory;
  produce(broker_, "orders", 1000, 1, inventory);
  const std::size_t poison =
      inventory.count(OrderFate::invalid) + inventory.count(OrderFate::broken);
  PipelineProcess pipeline(*folder_);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1000; })) << pipeline.log();
  EXPECT_EQ(lines(), poison);

  const auto listed = dlq({"ls", "orders"});
  EXPECT_NE(listed.out.find(fmt::format("\n{} dead letters: ", poison)), std::string::npos)
      << listed.out << listed.err;
  EXPECT_NE(listed.out.find(fmt::format("{} poison at decode", inventory.count(OrderFate::broken))),
            std::string::npos)
      << listed.out;
  const auto one = dlq({"ls", "orders", "--where", "stage=decode", "--limit", "1", "--json"});
  const nlohmann::json letter = nlohmann::json::parse(one.out, nullptr, false);
  EXPECT_EQ(letter.value("stage", ""), "decode") << one.out << one.err;
  const auto shown = dlq({"show", "orders", letter.value("id", "")});
  for (const char* part : {"  class: poison", "  redrives: 0", "  pipeline: orders", "\nvalue:"}) {
    EXPECT_NE(shown.out.find(part), std::string::npos) << shown.out << shown.err;
  }

  EXPECT_EQ(redrive({"--dry-run"})["redriven"], poison);
  EXPECT_EQ(redrive({"--where", "stage=decode", "--limit", "5"})["redriven"], 5);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1005; })) << pipeline.log();
  EXPECT_EQ(lines(), poison);  // Still broken: they are back.
  EXPECT_EQ(redrive({})["redriven"], poison);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 1005 + poison; })) << pipeline.log();
  const nlohmann::json third = redrive({});
  EXPECT_EQ(third["redriven"], poison - 5);
  EXPECT_EQ(third["redriven_too_often"], 5);
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  EXPECT_EQ(e2e::read_file(file_).find('\x18'), std::string::npos);
}

// SIGKILL at any time loses no dead letter: once the fault is repaired, all of them become orders
// in the end.
TEST_F(DeadLetters, ARedriveThatIsKilledLosesNothing) {
  constexpr std::size_t kOrders = 400;
  orders::OrderGenerator generator(1);
  SomeLetters letters(kOrders);
  for (std::size_t i = 0; i < kOrders; ++i) {
    auto order = generator.generate_valid(i);
    letters.record(i).key = order.order_uid;
    letters.record(i).value = std::move(order.bytes);
  }
  const auto target = FileDeadLetters::open(file_);
  ASSERT_TRUE((*target)->write(letters.all()).has_value());
  const auto crossed_out = [&] { return std::ranges::count(e2e::read_file(file_), '\x18'); };
  for (int life = 0; life < 3; ++life) {
    const auto before = crossed_out();
    e2e::ChildProcess redriving({.command = command({"redrive", "orders", "--rate", "200"}),
                                 .err_file = folder_->folder() / "redrive.log",
                                 .environment = folder_->environment()});
    EXPECT_TRUE(eventually([&] { return crossed_out() > before; }))
        << e2e::read_file(folder_->folder() / "redrive.log");
    EXPECT_FALSE(redriving.exit_code().has_value());
    redriving.kill();
  }
  EXPECT_EQ(lines(), kOrders);
  const std::size_t left = kOrders - static_cast<std::size_t>(crossed_out());
  EXPECT_EQ(redrive({})["redriven"], left);
  EXPECT_EQ(lines(), 0);

  PipelineProcess pipeline(*folder_);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return read_sqlite(folder_->database()).rows.size() == kOrders; }))
      << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// `run` writes them beside its config, from whatever folder it was started in.
TEST_F(DeadLetters, APathBeginsWhereTheConfigIs) {
  const auto target = FileDeadLetters::open(file_);
  ASSERT_TRUE((*target)->write(SomeLetters(3).all()).has_value());
  folder_->settings()["dead_letters.url"] = "file:dead.jsonl";
  const auto listed = dlq({"ls", "orders"});
  EXPECT_NE(listed.out.find("3 dead letters"), std::string::npos) << listed.out << listed.err;
  EXPECT_EQ(redrive({})["redriven"], 3);
  EXPECT_EQ(lines(), 0);
}

TEST_F(DeadLetters, BadInputIsNamed) {
  const auto missing = dlq({"ls", "orders"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.err.find("dead.jsonl: No such file"), std::string::npos) << missing.err;
  EXPECT_EQ(dlq({"redrive", "orders"}).exit_code, 3);
  e2e::write_file(file_, "garbage\n");
  const auto listed = dlq({"ls", "orders"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.err.find("dead.jsonl, line 1: not a dead letter"), std::string::npos)
      << listed.err;
  EXPECT_NE(listed.out.find("0 dead letters"), std::string::npos) << listed.out;
  EXPECT_EQ(dlq({"show", "orders", "x"}).exit_code, 3);
  for (const char* rate : {"0", "1e-13"}) {  // Too slow for any clock.
    EXPECT_EQ(dlq({"redrive", "orders", "--rate", rate}).exit_code, 2) << rate;
  }
  EXPECT_EQ(redrive({})["unreadable"], 1);
  EXPECT_EQ(e2e::read_file(file_), "garbage\n");
  folder_->settings()["dead_letters.url"] = "file:" + folder_->folder().path().string();
  const auto unreadable = dlq({"ls", "orders"});
  EXPECT_EQ(unreadable.exit_code, 12);
  EXPECT_NE(unreadable.err.find("Is a directory"), std::string::npos) << unreadable.err;
  EXPECT_EQ(dlq({"redrive", "orders"}).exit_code, 12);
  folder_->settings()["dead_letters.url"] = "kafka://127.0.0.1:1/dead";
  EXPECT_EQ(dlq({"ls", "orders"}).exit_code, 5);
}

// Each pipeline sees its own letters, and sends them to its own source.
TEST_F(DeadLetters, OfTwoPipelinesInOneQueueAreToldApart) {
  auto streams = client::Broker::open(broker_.connection());
  ASSERT_TRUE(streams->stream("payments").create(1).has_value());
  const auto target =
      QueueDeadLetters::open({.connection = broker_.connection(), .queue = "orders.dlq"});
  ASSERT_TRUE(target.has_value());
  std::int64_t offset = 0;  // A queue takes each letter once.
  const auto write = [&](const std::string& pipeline, const std::string& source) {
    SomeLetters letters(2, pipeline, offset += 2);
    for (DeadLetter& letter : letters.all()) letter.source = source;
    ASSERT_TRUE((*target)->write(letters.all()).has_value());
  };
  write("payments", "baton-stream:payments");
  const auto ask = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {e2e::binary(), "pipeline", "dlq"});
    arguments.insert(arguments.end(), {"--address", broker_.address()});
    return e2e::run_command(arguments);
  };
  EXPECT_EQ(ask({"redrive", "orders"}).exit_code, 3);
  write("orders", "baton-stream:orders");
  EXPECT_NE(ask({"ls", "orders"})
                .out.find("\n2 dead letters: 1 poison at decode, 1 poison at "
                          "schema; 2 of other pipelines"),
            std::string::npos)
      << ask({"ls", "orders"}).out;
  const auto other = client::Broker::open(broker_.connection())->queue("orders.dlq").peek(1);
  EXPECT_EQ(ask({"show", "payments", ""}).exit_code, 2);
  const auto shown = ask({"show", "orders", other->front().id});
  EXPECT_EQ(shown.exit_code, 3);
  EXPECT_NE(shown.err.find("of pipeline payments"), std::string::npos) << shown.err;

  const auto redriven = ask({"redrive", "orders", "--json"});
  EXPECT_NE(redriven.out.find("\"redriven\":2"), std::string::npos) << redriven.out << redriven.err;
  EXPECT_EQ(broker_.depth("orders.dlq"), 2U);
  EXPECT_EQ(streams->stream("payments").describe()->details[0].next_offset, Offset{0});

  // One dead letter of a source that the pipeline had before: the right source is ambiguous.
  write("orders", "baton-stream:orders");
  write("orders", "baton-stream:payments");
  const auto several = ask({"redrive", "orders"});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_NE(several.err.find("--config"), std::string::npos) << several.err;
  EXPECT_NE(several.err.find("baton-stream:orders, baton-stream:payments"), std::string::npos);
  EXPECT_EQ(broker_.depth("orders.dlq"), 6U);
}

// Letters that wait for their turn stay leased for as long as that takes.
TEST_F(DeadLetters, GoBackMoreSlowlyThanTheirLeasesLast) {
  client::QueueSettings settings;
  settings.visibility_timeout = seconds{2};
  broker_.create("dead", settings);
  folder_->settings()["dead_letters.url"] = "baton-queue://" + broker_.address() + "/dead";
  const auto target = QueueDeadLetters::open({.connection = broker_.connection(), .queue = "dead"});
  ASSERT_TRUE((*target)->write(SomeLetters(32).all()).has_value());
  // The last two stay, and others stay with them: no attempt is counted.
  EXPECT_EQ(redrive({"--rate", "5", "--limit", "30"})["redriven"], 30);
  EXPECT_EQ(broker_.depth("dead"), 2U);
  const auto left = broker_.client().queue("dead").peek(10);
  ASSERT_EQ(left->size(), 2U);
  for (const auto& message : *left) EXPECT_EQ(message.attempts, 0U);
  auto streams = client::Broker::open(broker_.connection());
  std::int64_t records = 0;
  for (const auto& one : streams->stream("orders").describe()->details)
    records += one.next_offset.value;
  EXPECT_EQ(records, 30);
}

// A dead letter that the source will never accept must not hold up the others.
TEST_F(DeadLetters, ThatTheSourceRefusesAreNamedAndStay) {
  client::QueueSettings settings;
  settings.payload_bytes_max = 100;
  broker_.create("jobs", settings);
  folder_->settings()["source.url"] = "baton-queue://" + broker_.address() + "/jobs";
  folder_->settings()["dead_letters.url"] = "baton-queue://" + broker_.address() + "/dead";
  SomeLetters letters(3);
  letters.record(1).value.assign(200, 'x');
  const auto target = QueueDeadLetters::open({.connection = broker_.connection(), .queue = "dead"});
  ASSERT_TRUE((*target)->write(letters.all()).has_value());
  const auto result = dlq({"redrive", "orders", "--json"});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  const auto counts = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_EQ(counts["redriven"], 2) << result.out;
  EXPECT_EQ(counts["refused"], 1) << result.out;
  ASSERT_EQ(broker_.depth("dead"), 1U);
  const std::string id = broker_.client().queue("dead").peek(1)->front().id;
  EXPECT_NE(result.err.find("baton: refused: " + id + ": "), std::string::npos) << result.err;
}

// An outage ends; a letter that is too large stays so. An operator has to know which one.
TEST_F(DeadLetters, OneThatIsTooLargeForItsQueueHaltsThePipeline) {
  client::QueueSettings settings;
  settings.payload_bytes_max = 1000;
  broker_.create("small", settings);
  folder_->settings()["dead_letters.url"] = "baton-queue://" + broker_.address() + "/small";
  auto producer = broker_.client().stream("orders").producer();
  ASSERT_TRUE(producer.has_value());
  producer->send({.key = "a", .value = "broken"}, {});
  producer->send({.key = "a", .value = std::string(2000, 'x')}, {});
  producer->send({.key = "a", .value = "broken"}, {});
  ASSERT_TRUE(producer->flush(seconds{10}).has_value());
  PipelineProcess pipeline(*folder_);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  // The line follows the state.
  EXPECT_TRUE(eventually([&] {
    const std::string log = pipeline.log();
    return log.find("offset 1 (2001 bytes) is refused by baton-queue:small, for good") !=
               std::string::npos &&
           log.find("1000") != std::string::npos;
  })) << pipeline.log();
  EXPECT_EQ(pipeline.ended(), 1U);
  settings.payload_bytes_max = 5000;
  ASSERT_TRUE(broker_.client().queue("small").update(settings).has_value());
  pipeline.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 3; })) << pipeline.log();
  EXPECT_EQ(broker_.depth("small"), 3U);
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

TEST_F(DeadLetters, NoQueueTakesMoreThanItsBrokerDoes) {
  const auto target = QueueDeadLetters::open({.connection = broker_.connection(), .queue = "dead"});
  ASSERT_TRUE(target.has_value());
  for (const std::size_t bytes : {limits::kPayloadBytesMax + 1, 6 * limits::kPayloadBytesMax}) {
    SomeLetters letters(1);
    letters.record(0).value.assign(bytes, 'x');
    const Status refused = (*target)->write(letters.all());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
    EXPECT_NE(refused.error().text.find("at most 16777216"), std::string::npos);
  }
}

// The broker remembers ids for longer than it keeps messages.
TEST_F(DeadLetters, ThatWereTakenAwayAreWrittenAgain) {
  const auto target = QueueDeadLetters::open({.connection = broker_.connection(), .queue = "dead"});
  ASSERT_TRUE(target.has_value());
  const SomeLetters letters(5);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE((*target)->write(letters.all()).has_value());
  EXPECT_EQ(broker_.depth("dead"), 5U) << "written again they are not there twice";
  ASSERT_TRUE(broker_.client().queue("dead").purge().has_value());
  ASSERT_TRUE((*target)->write(letters.all()).has_value());
  EXPECT_EQ(broker_.depth("dead"), 5U);
}

TEST_F(DeadLetters, BeyondWhatAQueueRemembersAreWrittenWithoutAnId) {
  client::QueueSettings settings;
  settings.dedup_ids_max = 3;
  ASSERT_TRUE(broker_.client().queue("dead").create(settings).has_value());
  const auto target = QueueDeadLetters::open({.connection = broker_.connection(), .queue = "dead"});
  ASSERT_TRUE(target.has_value());
  const SomeLetters letters(5);
  ASSERT_TRUE((*target)->write(letters.all()).has_value());
  EXPECT_EQ(broker_.depth("dead"), 5U);
}

}  // namespace
}  // namespace baton::pipeline
