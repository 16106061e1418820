// Dead letters in a topic of librdkafka's mock: listed without a trace, and sent back once each,
// though single records cannot be removed from a topic.
#include <set>
#include <string>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/kafka/kafka_dead_letters.h"
#include "pipeline/kafka/kafka_letter_store.h"
#include "pipeline/kafka/kafka_producer.h"
#include "pipeline/kafka_mock.h"
#include "pipeline/kafka_testing.h"
#include "pipeline/letters.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline::kafka_test {
namespace {

using e2e::eventually;

class KafkaLetters : public ::testing::Test {
 protected:
  void SetUp() override {
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    mock().create(topic_, 3);
    view_ = std::make_unique<KafkaView>(mock().brokers(), topic_, "redrive-" + topic_);
  }
  static KafkaMock& mock() {
    static KafkaMock one;
    return one;
  }
  void write(const std::vector<DeadLetter>& letters, const std::string& topic = "") {
    const auto target = KafkaDeadLetters::open(
        {.brokers = mock().brokers(), .topic = topic.empty() ? topic_ : topic});
    ASSERT_TRUE(target.has_value()) << to_string(target.error());
    const Status written = (*target)->write(letters);
    ASSERT_TRUE(written.has_value()) << to_string(written.error());
  }
  std::unique_ptr<KafkaLetterStore> store(const std::string& topic = "") {
    auto opened = KafkaLetterStore::open({.brokers = mock().brokers(),
                                          .topic = topic.empty() ? topic_ : topic,
                                          .group = "redrive-" + topic_});
    EXPECT_TRUE(opened.has_value()) << to_string(opened.error());
    return *std::move(opened);
  }
  Result<RedriveCounts> try_redrive(RedriveRequest request = {}) {
    request.pipeline = "orders";
    return pipeline::redrive(*store(), request, output_);
  }
  RedriveCounts redrive(const RedriveRequest& request = {}) {
    auto counts = try_redrive(request);
    EXPECT_TRUE(counts.has_value()) << to_string(counts.error());
    return counts.value_or(RedriveCounts{});
  }
  bool nothing_is_committed() {
    return view_->committed(0) == -1 && view_->committed(1) == -1 && view_->committed(2) == -1;
  }
  /// Different ones.
  [[nodiscard]] std::size_t redriven() const {
    std::set<std::string> values;
    for (const Record& record : output_.records) values.insert(record.value);
    return values.size();
  }

  std::string topic_;
  std::unique_ptr<KafkaView> view_;
  OutputInMemory output_;
};

TEST_F(KafkaLetters, AreListedWithoutATrace) {
  SomeLetters letters(20);
  letters.record(7).value = std::string("\0\xff", 2);
  letters.record(7).headers = {{"same", "1"}, {"same", "\xff"}};
  write(letters.all());
  const SeenLetters seen = read_all(*store());
  ASSERT_EQ(seen.letters.size(), 20U);
  std::set<std::string> ids;
  for (const StoredLetter& letter : seen.letters) {
    ids.insert(letter.id);
    if (letter.record.offset != 7) continue;
    const auto found = store()->find(letter.id);
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    EXPECT_EQ(found->record.key, "key7");
    EXPECT_EQ(found->record.value, letters.record(7).value);
    EXPECT_EQ(found->record.headers, letters.record(7).headers);
    EXPECT_EQ(found->what("baton-stage"), "schema");
    EXPECT_EQ(found->what("baton-source"), "baton-stream:orders");
  }
  EXPECT_EQ(ids.size(), 20U);
  int shown = 0;
  EXPECT_TRUE(store()->read([&](const FoundLetter&) { return ++shown < 3; }).has_value());
  EXPECT_EQ(shown, 3);
  EXPECT_EQ(redrive({.dry_run = true}).redriven, 20U);
  EXPECT_TRUE(nothing_is_committed());
}

TEST_F(KafkaLetters, ThatAreRefusedStayAlone) {
  write(SomeLetters(60).all());
  output_.refused_value = "value33";
  const RedriveCounts first = redrive();
  EXPECT_EQ(first.redriven, 59U);
  EXPECT_EQ(first.refused, 1U);
  EXPECT_EQ(redriven(), 59U);
  const auto left = read_all(*store()).letters;
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].record.offset, 33);
  output_.refused_value.clear();
  EXPECT_EQ(redrive().redriven, 1U);
  EXPECT_TRUE(read_all(*store()).letters.empty());
}

// Those that do not match wait for another run, and those that did are not sent again.
TEST_F(KafkaLetters, EachGoesBackOnceInWhateverOrder) {
  write(SomeLetters(60).all());
  const RedriveRequest schema{.where = {{"stage", "schema"}}};
  const RedriveCounts first = redrive(schema);
  EXPECT_EQ(first.redriven, 30U);
  EXPECT_EQ(first.other, 30U);
  const auto left = read_all(*store()).letters;
  ASSERT_EQ(left.size(), 30U);
  for (const StoredLetter& letter : left) EXPECT_EQ(letter.what("baton-stage"), "decode");
  const RedriveCounts again = redrive(schema);
  EXPECT_EQ(again.redriven, 0U);
  EXPECT_EQ(again.other, 30U);
  // More letters have come meanwhile.
  write(SomeLetters(10, "orders", 1000).all());
  EXPECT_EQ(redrive({.limit = 7}).redriven, 7U);
  EXPECT_EQ(redrive().redriven, 33U);
  ASSERT_EQ(output_.records.size(), 70U);
  EXPECT_EQ(redriven(), 70U);
  EXPECT_EQ(output_.records[0].headers.back(),
            (std::pair<std::string, std::string>("baton-redrives", "1")));
  EXPECT_EQ(read_all(*store()).letters.size(), 0U);
  EXPECT_TRUE(view_->all_committed());
}

TEST_F(KafkaLetters, StayUntilTheirRecordsAreConfirmed) {
  write(SomeLetters(30).all());
  output_.down = true;
  EXPECT_FALSE(try_redrive().has_value());
  EXPECT_TRUE(nothing_is_committed());
  output_.down = false;
  output_.records.clear();
  // Confirmed, but the removal cannot be recorded: they will be sent twice, and nothing is lost.
  const std::vector refused(20, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
  mock().fail(KafkaMock::kOffsetCommit, refused);
  const auto failed = try_redrive();
  mock().stop_failing(KafkaMock::kOffsetCommit);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::failed_precondition);
  redrive();
  EXPECT_EQ(redriven(), 30U);
  EXPECT_GT(output_.records.size(), 30U);
  EXPECT_TRUE(view_->all_committed());
}

TEST_F(KafkaLetters, WhatIsNoLetterStays) {
  write(SomeLetters(2).all());
  auto producer = KafkaProducer::open({.brokers = mock().brokers(), .topic = topic_});
  ASSERT_TRUE((*producer)->send("key0", "not a letter").has_value());
  ASSERT_TRUE((*producer)->flush(seconds(10)).has_value());
  write(SomeLetters(2, "orders", 10).all());
  write(SomeLetters(3, "payments", 20).all());
  const SeenLetters seen = read_all(*store());
  EXPECT_EQ(seen.letters.size(), 7U);
  ASSERT_EQ(seen.unreadable.size(), 1U);
  EXPECT_NE(seen.unreadable[0].find(", offset "), std::string::npos) << seen.unreadable[0];
  const RedriveCounts counts = redrive();
  EXPECT_EQ(counts.redriven, 4U);
  EXPECT_EQ(counts.other, 3U);
  EXPECT_EQ(counts.unreadable, 1U);
  EXPECT_EQ(read_all(*store()).unreadable, seen.unreadable);
  EXPECT_EQ(read_all(*store()).letters.size(), 3U);
}

// Only a limited number of gaps between letters that stay can be recorded; the rest is not lost.
TEST_F(KafkaLetters, MoreGapsThanCanBeRemembered) {
  const std::string narrow = topic_ + "-narrow";
  mock().create(narrow, 1);
  const SomeLetters letters(5000);
  write(letters.all(), narrow);
  RedriveRequest request{.pipeline = "orders", .where = {{"stage", "schema"}}};
  const auto first = pipeline::redrive(*store(narrow), request, output_);
  ASSERT_TRUE(first.has_value()) << to_string(first.error());
  EXPECT_GT(first->redriven, 1000U);
  EXPECT_LT(first->redriven, 2500U);
  EXPECT_EQ(first->redriven + first->other + first->not_reached, 5000U);
  EXPECT_EQ(read_all(*store(narrow)).letters.size(), 5000U - first->redriven);
  request.where.clear();
  const auto rest = pipeline::redrive(*store(narrow), request, output_);
  EXPECT_EQ(rest->not_reached, 0U);
  EXPECT_EQ(output_.records.size(), 5000U);
  EXPECT_EQ(redriven(), 5000U);
}

TEST_F(KafkaLetters, WhatIsNotThereIsSaid) {
  write(SomeLetters(1).all());
  for (const auto& [id, code] : {std::pair{"0/99", Errc::not_found},
                                 {"9/0", Errc::not_found},
                                 {"x", Errc::invalid_argument},
                                 {"", Errc::invalid_argument},
                                 {"0/", Errc::invalid_argument},
                                 {"0/-1", Errc::invalid_argument}}) {
    const auto found = store()->find(id);
    ASSERT_FALSE(found.has_value()) << id;
    EXPECT_EQ(found.error().code, code) << id;
  }
  mock().create("gone", 1);
  mock().set_topic_error("gone", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto missing =
      KafkaLetterStore::open({.brokers = mock().brokers(), .topic = "gone", .group = "g"});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Errc::not_found);
  EXPECT_NE(missing.error().text.find("'gone'"), std::string::npos) << missing.error().text;
}

TEST_F(KafkaLetters, OnesThatAreTooLargeAreRefusedForGood) {
  mock().fail(KafkaMock::kProduce, {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
  const auto target = KafkaDeadLetters::open({.brokers = mock().brokers(), .topic = topic_});
  const Status refused = (*target)->write(SomeLetters(1).all());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().text.find("max.message.bytes"), std::string::npos);
}

// End to end: an order pipeline, its dead letters in a topic, the command line.
TEST_F(KafkaLetters, OfAPipelineGoBackByTheCommandLine) {
  e2e::BrokerProcess broker;
  ASSERT_TRUE(broker.start());
  auto client = client::Broker::open(broker.connection());
  ASSERT_TRUE(client->stream("orders").create(2).has_value());
  const PipelineFolder folder(broker,
                              {{"dead_letters.url", "kafka://" + mock().brokers() + "/" + topic_},
                               {"dead_letters.redrives_max", "1"}});
  const auto dlq = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {e2e::binary(), "pipeline", "dlq"});
    arguments.insert(arguments.end(), {"--config", folder.config()});
    return e2e::run_command(arguments, {.environment = folder.environment()});
  };
  Inventory inventory;
  pipeline::produce(broker, "orders", 500, 1, inventory);
  const std::size_t poison =
      inventory.count(orders::OrderFate::invalid) + inventory.count(orders::OrderFate::broken);
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 500; })) << pipeline.log();
  const auto listed = dlq({"ls", "orders"});
  EXPECT_NE(listed.out.find(fmt::format("\n{} dead letters: ", poison)), std::string::npos)
      << listed.out << listed.err;
  const std::string id = listed.out.substr(listed.out.find('\n') + 1, 3);
  EXPECT_NE(dlq({"show", "orders", id}).out.find("  class: poison"), std::string::npos) << id;
  EXPECT_EQ(dlq({"show", "orders", "0/12345"}).exit_code, 3);
  const auto redriven = dlq({"redrive", "orders"});
  EXPECT_NE(redriven.out.find(fmt::format("{} redriven", poison)), std::string::npos)
      << redriven.out << redriven.err;
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 500 + poison; })) << pipeline.log();
  // They are as broken as before, and return as new letters.
  const auto again = dlq({"redrive", "orders"});
  EXPECT_NE(again.out.find(fmt::format("0 redriven, 0 left that did not match, {} left", poison)),
            std::string::npos)
      << again.out << again.err;
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

}  // namespace
}  // namespace baton::pipeline::kafka_test
