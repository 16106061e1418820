#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/grpc/consumer_fixture.h"
#include "server/grpc/queue_calls.h"

namespace baton::consumer_test {
namespace {

/// Takes the place of gRPC, so that a test decides how each write ends.
class FakePort final : public StreamPort {
 public:
  void read() override {}
  void write(grpc::ByteBuffer /*frame*/) override { add(writes_); }
  void finish(const grpc::Status& /*status*/) override { add(finishes_); }

  void wait_for_writes(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return writes_ >= count; }));
  }
  void wait_for_finish() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return finishes_ >= 1; }));
  }
  int finishes() {
    const std::lock_guard lock(mutex_);
    return finishes_;
  }

 private:
  void add(int& count) {
    {
      const std::lock_guard lock(mutex_);
      ++count;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int writes_ = 0;
  int finishes_ = 0;
};

class ConsumerPortTest : public ConsumerStreamTest {
 protected:
  /// A registered consumer on a FakePort, with its first response written.
  std::shared_ptr<ConsumerCall> registered(FakePort& port) {
    auto stream =
        std::make_shared<ConsumerCall>(std::make_shared<ServerState>(broker_, std::uint64_t{1}));
    AttachCommand command;
    command.queue = "orders";
    stream->attach(std::move(command));
    stream->open(port, false);
    sink_ = accept();
    port.wait_for_writes(1);
    stream->on_written(true);
    return stream;
  }
};

// A failed write may not have reached the network: its messages count no attempt.
TEST_F(ConsumerPortTest, WhatAFailedWriteHeldIsUnwrittenAndSoIsWhatWaitedBehindIt) {
  FakePort port;
  const auto stream = registered(port);
  deliver(sink_, {delivery(1)});
  port.wait_for_writes(2);
  stream->on_written(true);
  deliver(sink_, {delivery(2), delivery(3)});
  port.wait_for_writes(3);
  stream->on_cancel();
  // Its write is still under way, so it is not known yet what was written.
  EXPECT_EQ(broker_.detach_count(), 0U);
  EXPECT_EQ(port.finishes(), 0);
  stream->on_written(false);

  const std::vector<LeaseToken> expected = {{.boot = 4, .number = 2}, {.boot = 4, .number = 3}};
  EXPECT_EQ(broker_.detaches(1)[0].unwritten, expected);
  port.wait_for_finish();
  EXPECT_EQ(port.finishes(), 1);
}

// A client that sees the end of its stream may rely on its messages being free for others.
TEST_F(ConsumerPortTest, TheEndIsNotToldBeforeTheDetachIsDone) {
  FakePort port;
  broker_.hold_detaches();
  const auto stream = registered(port);
  stream->session()->end({});
  std::unique_ptr<Call> detach = broker_.take<DetachCommand>();
  EXPECT_EQ(port.finishes(), 0);
  broker_.complete(std::move(detach));
  port.wait_for_finish();
  EXPECT_EQ(port.finishes(), 1);
}

}  // namespace
}  // namespace baton::consumer_test
