#include <algorithm>
#include <future>
#include <thread>

#include <baton/broker.h>
#include <baton/stream_producer.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "sdk/stream/test_streams.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using AppendCall = TestStreams::AppendCall;

constexpr seconds kLong{20};

NewRecord record(int number) { return {.value = std::to_string(number)}; }

std::vector<std::string> numbers(int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back(std::to_string(i));
  return list;
}

std::unique_ptr<StreamProducer> open(const TestStreams& broker,
                                     StreamProducerOptions options = {}) {
  auto producer = Broker::open(broker.connection())->stream("events").producer(std::move(options));
  EXPECT_TRUE(producer.has_value());
  return std::make_unique<StreamProducer>(*std::move(producer));
}

const grpc::Status kDying(grpc::StatusCode::UNAVAILABLE, "dying");

TEST(StreamProducer, ConfirmsEachRecordWithItsOffsetInOrder) {
  TestStreams broker;
  const auto producer = open(broker, {.batch_bytes = 1024});
  Log<std::int64_t> offsets;

  for (int i = 0; i < 1000; ++i) {
    producer->send(record(i),
                   [&](const AppendResult& result) { offsets.add(result.offset.value); });
  }

  ASSERT_TRUE(producer->flush(kLong).has_value());
  const auto got = offsets.now();
  ASSERT_EQ(got.size(), 1000U);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<std::int64_t>(i));
  EXPECT_EQ(broker.log.values(), numbers(1000));
  EXPECT_GT(producer->stats().batches_written, 1U);
  EXPECT_EQ(producer->stats().records_confirmed, 1000U);
  EXPECT_EQ(producer->stats().bytes_in_flight, 0U);
}

// The promise: whatever breaks in mid-flight, no record twice, none lost, order kept.
TEST(StreamProducer, StoresEveryRecordOnceAndInOrderWhileSessionsBreak) {
  TestStreams broker(2);
  std::atomic<std::uint64_t> seed = 0;
  broker.on_append_stream = [&](int number, AppendCall& call) {
    Random random(++seed);
    v1::AppendRequest request;
    while (call.Read(&request)) {
      const auto choice = number < 60 ? random.below(8) : 7;
      if (choice == 0) return kDying;  // Received it and forgot it.
      const v1::AppendResponse response = broker.log.append(request);
      if (choice == 1) return kDying;  // Stored it and did not answer.
      call.Write(response);
      if (choice == 2) call.Write(response);              // Answered twice.
      if (choice == 3) call.Write(v1::AppendResponse{});  // Nonsense.
    }
    return grpc::Status::OK;
  };
  const auto producer = open(broker, {.linger = std::chrono::microseconds{0}, .batch_bytes = 128});
  std::atomic<int> failed = 0;

  for (int i = 0; i < 3000; ++i) {
    NewRecord made = record(i / 2);
    made.partition = PartitionNumber{static_cast<std::uint32_t>(i % 2)};
    producer->send(std::move(made), [&](const AppendResult& result) { failed += !result.ok(); });
  }

  ASSERT_TRUE(producer->flush(kLong).has_value());
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(broker.log.values(0), numbers(1500));
  EXPECT_EQ(broker.log.values(1), numbers(1500));
  EXPECT_GT(producer->stats().reconnects, 0U);
  EXPECT_GT(producer->stats().batches_resent, 0U);
}

// The same with refused batches in between, each of which requires a new epoch.
TEST(StreamProducer, ARefusedBatchFailsItsRecordsAndNobodyElses) {
  TestStreams broker;
  broker.log.refuse_if([](const std::vector<std::string>& values) {
    return std::ranges::any_of(values, [](const auto& value) { return value.starts_with("bad"); });
  });
  std::atomic<std::uint64_t> seed = 0;
  broker.on_append_stream = [&](int number, AppendCall& call) {
    Random random(++seed);
    v1::AppendRequest request;
    while (call.Read(&request)) {
      const v1::AppendResponse response = broker.log.append(request);
      if (number < 20 && random.below(6) == 0) return kDying;
      call.Write(response);
    }
    return grpc::Status::OK;
  };
  // One record is one batch.
  const auto producer = open(broker, {.linger = std::chrono::microseconds{0}, .batch_bytes = 1});
  Log<std::string> failed;

  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 25) {
      producer->send({.value = "bad"}, [&](const AppendResult& result) {
        failed.add(result.error ? to_string(*result.error) : "");
      });
    }
    producer->send(record(i), {});
  }

  const Status flushed = producer->flush(kLong);
  ASSERT_FALSE(flushed.has_value());
  EXPECT_EQ(flushed.error().code, Errc::invalid_argument);
  EXPECT_EQ(failed.now(),
            std::vector<std::string>(4, "invalid_argument: scripted invalid_argument"));
  EXPECT_EQ(broker.log.values(), numbers(200));
  EXPECT_EQ(producer->stats().records_failed, 4U);
  EXPECT_GE(producer->stats().epochs, 1U);
  EXPECT_TRUE(producer->flush(kLong).has_value());  // Reported once.
}

TEST(StreamProducer, IsOverWhenSomebodyTakesItsName) {
  TestStreams broker;
  const auto producer = open(broker, {.producer = "billing"});
  ASSERT_TRUE(producer->send(record(0)).get().ok());
  broker.fence();

  const AppendResult fenced = producer->send(record(1)).get();
  const AppendResult later = producer->send(record(2)).get();

  ASSERT_FALSE(fenced.ok());
  EXPECT_EQ(fenced.error->code, Errc::producer_fenced);
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error->code, Errc::producer_fenced);
  EXPECT_NE(later.error->text.find("another producer has started as \"billing\""),
            std::string::npos);
  EXPECT_EQ(broker.log.values(), numbers(1));
}

TEST(StreamProducer, ABrokerThatAnswersOnlyNonsenseIsGivenUp) {
  TestStreams broker;
  broker.on_append_stream = [](int, AppendCall& call) {
    v1::AppendRequest request;
    while (call.Read(&request)) call.Write(v1::AppendResponse{});
    return grpc::Status::OK;
  };
  const auto producer = open(broker);

  const AppendResult result = producer->send(record(0)).get();

  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error->code, Errc::internal);
  EXPECT_NE(result.error->text.find("0 results to 1 batches"), std::string::npos);
}

TEST(StreamProducer, WaitsForABrokerThatComesBack) {
  TestStreams broker;
  const auto producer = open(broker);
  broker.stop();
  auto result = producer->send(record(0));

  broker.start();

  EXPECT_TRUE(result.get().ok());
}

TEST(StreamProducer, BoundsItsMemory) {
  TestStreams broker;
  Gate answer;
  broker.on_append_stream = [&](int, AppendCall& call) {
    EXPECT_TRUE(answer.wait());
    return broker.append_all(call);
  };
  const auto producer = open(
      broker, {.linger = seconds{3600}, .buffer_bytes_max = 700, .send_timeout = milliseconds{1}});
  for (int i = 0; i < 10; ++i) producer->send(record(i), {});  // 65 bytes each.

  NewRecord eleventh = record(10);
  EXPECT_FALSE(producer->try_send(eleventh, {}));
  EXPECT_EQ(eleventh.value, "10");
  const AppendResult refused = producer->send(record(10)).get();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error->code, Errc::resource_exhausted);
  answer.open();
  ASSERT_TRUE(producer->flush(kLong).has_value());
  EXPECT_TRUE(producer->try_send(eleventh, {}));
  ASSERT_TRUE(producer->flush(kLong).has_value());
  EXPECT_EQ(broker.log.values(), numbers(11));
}

TEST(StreamProducer, LingersForCompanyButNotWhenFlushed) {
  TestStreams broker;
  const auto producer = open(broker, {.linger = seconds{3600}});
  for (int i = 0; i < 4; ++i) producer->send(record(i), {});
  EXPECT_EQ(producer->stats().batches_written, 0U);

  ASSERT_TRUE(producer->flush(kLong).has_value());

  EXPECT_EQ(producer->stats().batches_written, 1U);
}

TEST(StreamProducer, ABadRecordIsRefusedAtOnceAndAlone) {
  TestStreams broker(2);
  const auto producer = open(broker);
  NewRecord elsewhere = record(0);
  elsewhere.partition = PartitionNumber{2};

  EXPECT_EQ(producer->send(elsewhere).get().error->code, Errc::partition_not_found);
  EXPECT_EQ(producer->send({.value = std::string(2'000'000, 'x')}).get().error->code,
            Errc::invalid_argument);
  EXPECT_TRUE(producer->send(record(1)).get().ok());
}

TEST(StreamProducer, ThatIsNotIdempotentAsksForNoIdentity) {
  TestStreams broker;
  const auto producer = open(broker, {.idempotent = false});
  EXPECT_TRUE(producer->send(record(0)).get().ok());
  EXPECT_EQ(broker.epochs(), 0);
}

TEST(StreamProducer, CloseConfirmsWhatWasSentAndRefusesTheRest) {
  TestStreams broker;
  const auto producer = open(broker, {.linger = seconds{3600}});
  auto before = producer->send(record(0));

  EXPECT_TRUE(producer->close(kLong).has_value());

  EXPECT_TRUE(before.get().ok());
  EXPECT_EQ(producer->send(record(1)).get().error->code, Errc::cancelled);
}

TEST(StreamProducer, CloseIsBoundedAndSaysThatNobodyKnows) {
  TestStreams broker;
  Gate read;
  Gate over;
  broker.on_append_stream = [&](int, AppendCall& call) {
    v1::AppendRequest request;
    call.Read(&request);
    read.open();
    (void)over.wait();
    return kDying;
  };
  const auto producer = open(broker);
  auto result = producer->send(record(0));
  ASSERT_TRUE(read.wait());

  EXPECT_EQ(producer->close(milliseconds{1}).error().code, Errc::deadline_exceeded);

  const AppendResult unknown = result.get();
  over.open();
  EXPECT_EQ(unknown.error->code, Errc::unavailable);
  EXPECT_NE(unknown.error->text.find("may or may not"), std::string::npos);
}

// No thread may be left waiting for an epoch that never comes.
TEST(StreamProducer, ARefusalOfANewEpochEndsTheProducer) {
  TestStreams broker;
  broker.log.refuse_if([](const auto& values) { return values.front() == "bad"; });
  const auto producer = open(broker, {.linger = std::chrono::microseconds{0}});
  broker.on_init = [](const v1::InitProducerRequest&, v1::InitProducerResponse&) {
    return refusal(grpc::StatusCode::NOT_FOUND, 302, "stream_not_found");
  };

  EXPECT_EQ(producer->send({.value = "bad"}).get().error->code, Errc::invalid_argument);
  EXPECT_EQ(producer->send(record(1)).get().error->code, Errc::stream_not_found);
}

TEST(StreamProducer, OpensOnlyWhatIsThere) {
  TestStreams broker;
  const auto client = Broker::open(broker.connection());
  const auto missing = client->stream("nothing").producer();
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Errc::stream_not_found);
  EXPECT_EQ(client->stream("").producer().error().code, Errc::invalid_argument);
  EXPECT_EQ(client->stream("s").producer({.idempotent = false, .producer = "n"}).error().code,
            Errc::invalid_argument);
}

}  // namespace
}  // namespace baton::client
