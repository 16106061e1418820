#include <memory>
#include <vector>

#include <baton/v1/streams.pb.h>
#include <gtest/gtest.h>

#include "server/grpc/record_wire.h"
#include "server/grpc/stream_calls.h"
#include "server/grpc/stream_fixture.h"

namespace baton {
namespace {

using Port = TestPort<v1::ReadResponse>;
using Responses = std::vector<v1::ReadResponse>;

class ReadCallTest : public StreamTest {
 protected:
  struct Reading {
    std::shared_ptr<ReadSession> stream;
    std::unique_ptr<Port> port;
  };
  Reading read(const ReadSession::Wanted& wanted, bool slow = false) {
    const auto opened = broker_.execute(OpenPartitionCommand{
        .stream = "s", .partition = PartitionNumber{0}, .error = {}, .opened = {}});
    auto stream = std::make_shared<ReadSession>(state_, wanted);
    auto port = std::make_unique<Port>(broker_, std::make_shared<ReadCall>(stream), false);
    port->set_slow(slow);
    partition_ = opened.opened;
    stream->start(opened.opened);
    return {stream, std::move(port)};
  }
  static ReadFrom at(std::int64_t offset) {
    return {.place = ReadFrom::Place::offset, .offset = Offset{offset}, .time = {}};
  }
  static std::vector<std::int64_t> offsets(const Responses& all) {
    std::vector<std::int64_t> found;
    for (const auto& one : all) {
      for (const v1::Record& record : one.records()) found.push_back(record.offset());
    }
    return found;
  }
  static ReadSession::Wanted records(const ReadFrom& from, std::uint64_t max = 0) {
    return {.from = from, .records_max = max, .follow = false, .encode_record = append_read_record};
  }

  std::shared_ptr<StreamPartition> partition_;
};

// Two servers in one process share nothing.
TEST_F(ReadCallTest, TheLimitOfOpenCallsIsAServersOwn) {
  const auto other = std::make_shared<ServerState>(broker_, 2);
  std::vector<std::unique_ptr<ReadSession>> open;
  for (std::size_t i = 0; i < ReadSession::kOpenMax; ++i) {
    open.push_back(std::make_unique<ReadSession>(other, ReadSession::Wanted{}));
    EXPECT_FALSE(open.back()->crowded());
  }
  EXPECT_TRUE(ReadSession(other, {}).crowded());
  EXPECT_FALSE(ReadSession(state_, {}).crowded());
  open.pop_back();
  EXPECT_FALSE(ReadSession(other, {}).crowded());
}

TEST_F(ReadCallTest, ReadsARangeAndEnds) {
  create(1);
  append(0, 3);
  append(0, 3);
  Reading reading = read(records(at(2), 3));
  EXPECT_TRUE(reading.port->wait_for_end().ok());
  EXPECT_EQ(offsets(reading.port->now()), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(reading.port->now().back().next_offset(), 5);
  reading = read(records({}));
  EXPECT_TRUE(reading.port->wait_for_end().ok());
  EXPECT_EQ(offsets(reading.port->now()).size(), 6U);
  EXPECT_EQ(reading.port->now().back().end_offset(), 6);
  // An empty range is valid, too.
  reading = read(records(at(6)));
  EXPECT_TRUE(reading.port->wait_for_end().ok());
  EXPECT_TRUE(reading.port->now().empty());
}

TEST_F(ReadCallTest, BeginsAtTheLastTheNextOrATime) {
  create(1);
  append(0);
  broker_.pass(std::chrono::seconds{100});
  append(0);
  const auto read_from = [&](ReadFrom::Place place, TimestampMs time = {}) {
    Reading reading = read(records({.place = place, .offset = {}, .time = time}));
    EXPECT_TRUE(reading.port->wait_for_end().ok());
    return offsets(reading.port->now());
  };
  EXPECT_EQ(read_from(ReadFrom::Place::last), (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(read_from(ReadFrom::Place::next).empty());
  const TimestampMs now = to_timestamp(broker_.now());
  EXPECT_EQ(read_from(ReadFrom::Place::time, now), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(read_from(ReadFrom::Place::time, TimestampMs{-5}).size(), 2U);
  EXPECT_TRUE(read_from(ReadFrom::Place::time, TimestampMs{now.value + 1}).empty());
}

TEST_F(ReadCallTest, OutsideTheLogItEndsWithOffsetOutOfRange) {
  create(1, few_segments());
  for (int i = 0; i < 20; ++i) append(0, 1, 2000);
  run_retention();
  for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{21}}) {
    Reading reading = read(records(at(offset)));
    EXPECT_EQ(reading.port->wait_for_end().error_code(), grpc::StatusCode::OUT_OF_RANGE);
  }
}

TEST_F(ReadCallTest, FollowsUntilItsCountIsReached) {
  create(1);
  ReadSession::Wanted wanted = records({}, 5);
  wanted.follow = true;
  Reading reading = read(wanted);
  for (int i = 0; i < 5; ++i) {
    append(0);
    reading.port->wait_for([&](const Responses& all) {
      return offsets(all).size() == static_cast<std::size_t>(i) + 1;
    });
  }
  EXPECT_TRUE(reading.port->wait_for_end().ok());
}

TEST_F(ReadCallTest, EndsWhenTheStreamIsDeletedAlsoWhileItWaits) {
  create(1);
  ReadSession::Wanted wanted = records({});
  wanted.follow = true;
  Reading reading = read(wanted);
  append(0);
  reading.port->wait_for([](const Responses& all) { return !all.empty(); });
  broker_.execute(DeleteStreamCommand{.stream = "s", .error = {}});
  EXPECT_EQ(reading.port->wait_for_end().error_code(), grpc::StatusCode::NOT_FOUND);
}

// A client that stops reading must not fill the disk.
TEST_F(ReadCallTest, ASlowClientDoesNotHoldUpRetention) {
  create(1, few_segments());
  for (int i = 0; i < 20; ++i) append(0, 1, 2000);
  Reading reading = read(records({}), true);
  reading.port->wait_for([](const Responses& all) { return !all.empty(); });
  // The write under way never ends; the chunk behind it is read soon.
  let_background_finish();
  run_retention();
  EXPECT_GT(first_offset(), Offset{10});
  reading.port->cancel();
}

// A partition that does not grow would remember its waiting readers for ever.
TEST_F(ReadCallTest, ReadersThatAreGoneAreForgotten) {
  create(1);
  ReadSession::Wanted wanted = records({});
  wanted.follow = true;
  for (int i = 0; i < 300; ++i) {
    Reading reading = read(wanted);
    let_background_finish();
    reading.port->cancel();
  }
  EXPECT_LT(partition_->waiters(), 200U);
}

}  // namespace
}  // namespace baton
