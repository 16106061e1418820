#include <thread>

#include <baton/broker.h>
#include <gtest/gtest.h>

#include "sdk/stream/test_streams.h"

namespace baton::client {
namespace {

using ReadCall = TestStreams::ReadCall;
using Values = std::vector<std::string>;

Broker connect(const TestStreams& broker) {
  auto client = Broker::open(broker.connection());
  EXPECT_TRUE(client.has_value());
  return *std::move(client);
}

/// Reads to the end.
Values read_all(StreamReader& reader) {
  Values values;
  while (true) {
    const auto records = reader.next();
    EXPECT_TRUE(records.has_value()) << records.error().text;
    if (!records || !*records) return values;
    for (const Record& record : **records) values.push_back(record.value.value_or(""));
  }
}

v1::ReadResponse response(const Values& values, std::int64_t offset, std::int64_t end) {
  v1::ReadResponse made;
  made.set_batches(batch_of(values, offset));
  made.set_next_offset(offset + static_cast<std::int64_t>(values.size()));
  made.set_end_offset(end);
  return made;
}

TEST(StreamHandle, SendsWhatIsSetAndReadsWhatComes) {
  TestStreams broker(2);
  broker.on_create = [&](const v1::CreateStreamRequest& request, v1::CreateStreamResponse& answer) {
    EXPECT_EQ(request.name(), "events");
    EXPECT_EQ(request.partitions(), 2U);
    EXPECT_EQ(request.settings().retention().seconds(), 5);
    EXPECT_EQ(request.settings().fsync().mode(), v1::StreamSettings::Fsync::MODE_NEVER);
    EXPECT_FALSE(request.settings().has_segment_bytes());
    *answer.mutable_stream() = broker.stream;
    return grpc::Status::OK;
  };
  broker.stream.mutable_details(1)->set_next_offset(9);
  auto& group = *broker.stream.mutable_details(1)->add_groups();
  group.set_group("g");
  group.set_lag(4);
  auto client = connect(broker);

  const auto made =
      client.stream("events").create(2, {.retention = std::chrono::seconds{5}, .fsync = "never"});

  ASSERT_TRUE(made.has_value());
  ASSERT_EQ(made->details.size(), 2U);
  EXPECT_EQ(made->details[1].next_offset, Offset{9});
  EXPECT_EQ(made->details[1].groups[0].lag, 4U);
  EXPECT_FALSE(made->details[1].groups[0].offset.has_value());
  EXPECT_EQ(client.stream("other").describe().error().code, Errc::stream_not_found);
}

TEST(StreamHandle, AppendAnswersOneResultPerRecord) {
  TestStreams broker;
  broker.on_append = [](const v1::AppendRequest& request, v1::AppendResponse& answer) {
    EXPECT_EQ(request.records(0).key(), "k");
    EXPECT_FALSE(request.records(1).has_key());
    EXPECT_EQ(request.records(1).headers(0).name(), "h");
    EXPECT_FALSE(request.records(1).headers(0).has_value());
    answer.add_records()->set_offset(4);
    auto& error = *answer.add_records()->mutable_error();
    error.set_code(304);
    error.set_name("partition_not_found");
    return grpc::Status::OK;
  };
  auto client = connect(broker);
  std::vector<NewRecord> records(2);
  records[0].key = "k";
  records[1].headers.push_back({.name = "h"});

  const auto results = client.stream("events").append(records);

  ASSERT_TRUE(results.has_value());
  EXPECT_EQ(results->at(0).offset, Offset{4});
  EXPECT_EQ(results->at(1).error->code, Errc::partition_not_found);
  EXPECT_EQ(results->at(1).offset, kNoOffset);
}

TEST(StreamHandle, GroupsShowTheirMembers) {
  TestStreams broker;
  broker.on_describe_group = [](const v1::DescribeGroupRequest&,
                                v1::DescribeGroupResponse& answer) {
    v1::Group& group = *answer.add_partitions();
    group.set_group("g");
    group.mutable_last_hand_over()->set_nanos(1'500'000);
    group.set_offset(0);
    v1::GroupMember& member = *group.add_members();
    member.set_owner("me");
    member.set_activity(v1::GroupMember::ACTIVITY_DEACTIVATING);
    member.set_connectivity(v1::GroupMember::CONNECTIVITY_FORGOTTEN);
    return grpc::Status::OK;
  };
  auto client = connect(broker);

  const auto groups = client.stream("events").group("g").describe();

  ASSERT_TRUE(groups.has_value());
  EXPECT_EQ(groups->at(0).offset, Offset{0});
  EXPECT_EQ(groups->at(0).last_hand_over, std::chrono::microseconds{1'500});
  EXPECT_EQ(groups->at(0).members.at(0).activity, Activity::deactivating);
  EXPECT_EQ(groups->at(0).members.at(0).connectivity, Connectivity::forgotten);
}

TEST(StreamReader, LeavesOutWhatLiesBeforeAndBeyond) {
  TestStreams broker;
  broker.on_read = [](int, const v1::ReadRequest& request, ReadCall& call) {
    EXPECT_EQ(request.from().offset(), 1);
    EXPECT_EQ(request.records_max(), 3U);
    call.Write(response({"a", "b", "c"}, 0, 9));
    call.Write(response({"d", "e"}, 3, 9));
    return grpc::Status::OK;
  };
  auto client = connect(broker);
  auto reader = client.stream("events").read({.from = StartFrom::at(Offset{1}), .records_max = 3});
  EXPECT_EQ(reader.position(), kNoOffset);

  EXPECT_EQ(read_all(reader), (Values{"b", "c", "d"}));
  EXPECT_EQ(reader.position(), Offset{4});
  EXPECT_FALSE(reader.next()->has_value());
}

// Records that the client leaves out may have counted against the limit at the broker.
TEST(StreamReader, AsksAgainWhenTheLimitWasReachedTooEarly) {
  TestStreams broker;
  broker.on_read = [](int number, const v1::ReadRequest& request, ReadCall& call) {
    EXPECT_EQ(request.records_max(), number == 1 ? 2U : 1U);
    call.Write(number == 1 ? response({"a", "b"}, 0, 3) : response({"c"}, 2, 3));
    return grpc::Status::OK;
  };
  auto client = connect(broker);
  auto reader = client.stream("events").read({.from = StartFrom::at(Offset{1}), .records_max = 2});
  EXPECT_EQ(read_all(reader), (Values{"b", "c"}));
}

TEST(StreamReader, FollowsOverABrokenConnectionAndStops) {
  TestStreams broker;
  Gate waiting;
  Gate over;
  broker.on_read = [&](int number, const v1::ReadRequest& request, ReadCall& call) {
    EXPECT_TRUE(request.follow());
    if (number == 1) {
      call.Write(response({"a", "b"}, 0, 2));
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
    }
    EXPECT_EQ(request.from().offset(), 2);
    call.Write(response({"c"}, 2, 3));
    waiting.open();
    EXPECT_TRUE(over.wait());
    return grpc::Status::OK;
  };
  auto client = connect(broker);
  auto reader = client.stream("events").read({.follow = true});
  std::thread stopper([&] {
    EXPECT_TRUE(waiting.wait());
    while (reader.position() != Offset{3}) std::this_thread::yield();
    reader.close();
  });

  EXPECT_EQ(read_all(reader), (Values{"a", "b", "c"}));
  over.open();
  stopper.join();
}

TEST(StreamReader, FailsWithTheBrokersErrorAndOnDamage) {
  TestStreams broker;
  broker.on_read = [](int number, const v1::ReadRequest&, ReadCall& call) {
    if (number == 1) return refusal(grpc::StatusCode::OUT_OF_RANGE, 305, "offset_out_of_range");
    v1::ReadResponse damaged = response({"a"}, 0, 1);
    damaged.mutable_batches()->back() ^= 1;
    call.Write(damaged);
    return grpc::Status::OK;
  };
  auto client = connect(broker);
  auto first = client.stream("events").read();
  EXPECT_EQ(first.next().error().code, Errc::offset_out_of_range);
  EXPECT_EQ(first.next().error().code, Errc::offset_out_of_range);
  auto second = client.stream("events").read();
  EXPECT_EQ(second.next().error().code, Errc::malformed);
}

}  // namespace
}  // namespace baton::client
