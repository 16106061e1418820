#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/grpc/status.h"
#include "server/grpc/stream_calls.h"
#include "server/grpc/stream_fixture.h"

namespace baton {
namespace {

using Port = TestPort<v1::AppendResponse>;
using Responses = std::vector<v1::AppendResponse>;

class AppendCallTest : public StreamTest {
 protected:
  static v1::AppendRequest request(const std::string& stream, int records) {
    v1::AppendRequest request;
    request.set_stream(stream);
    for (int i = 0; i < records; ++i) request.add_records()->set_value("v");
    return request;
  }
  static auto at_least(std::size_t count) {
    return [count](const Responses& all) { return all.size() >= count; };
  }

  std::shared_ptr<AppendCall> stream_ = std::make_shared<AppendCall>(state_);
  Port port_{broker_, stream_, true};
};

TEST_F(AppendCallTest, EveryRequestIsAnsweredInItsPlace) {
  create(1);
  port_.send(request("s", 2));
  port_.send(request("absent", 2));
  port_.send(request("not a name", 1));
  port_.send(request("s", 0));
  port_.send(request("s", 1));
  const Responses all = port_.wait_for(at_least(5));
  ASSERT_EQ(all[0].records_size(), 2);
  EXPECT_EQ(all[0].records(1).offset(), 1);
  ASSERT_EQ(all[1].records_size(), 2);
  EXPECT_EQ(all[1].records(0).error().name(), "stream_not_found");
  ASSERT_EQ(all[2].records_size(), 1);
  EXPECT_EQ(all[2].records(0).error().name(), "invalid_argument");
  EXPECT_EQ(all[3].records_size(), 0);
  EXPECT_EQ(all[4].records(0).offset(), 2);
  port_.half_close();
  EXPECT_TRUE(port_.wait_for_end().ok());
}

TEST_F(AppendCallTest, WhatIsUnderWayIsConfirmedBeforeTheEnd) {
  create(1);
  port_.send(request("s", 1));
  stream_->on_read(nullptr);
  EXPECT_FALSE(port_.finished());
  EXPECT_TRUE(port_.wait_for_end().ok());
  EXPECT_EQ(port_.now().size(), 1U);
}

TEST_F(AppendCallTest, ABrokerThatStopsEndsTheStream) {
  create(1);
  broker_.refuse();
  port_.send(request("s", 1));
  EXPECT_EQ(port_.wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(port_.now().empty());
}

TEST_F(AppendCallTest, AClientThatIsGoneIsNotWaitedFor) {
  create(1);
  port_.send(request("s", 1));
  port_.cancel();
  EXPECT_TRUE(port_.finished());
  broker_.turn();
  const auto done =
      broker_.execute(DescribeStreamCommand{.stream = "s", .error = {}, .description = {}});
  EXPECT_EQ(done.description.partitions.at(0).log.next, Offset{1});
}

}  // namespace
}  // namespace baton
