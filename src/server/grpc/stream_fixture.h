#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include "server/grpc/stream_call.h"
#include "server/session/server_state.h"
#include "server/session/turn_broker.h"

namespace baton {

/// The client's side of a StreamCall, without gRPC in between.
template <class Response>
class TestPort final : public StreamPort {
 public:
  TestPort(TurnBroker& broker, std::shared_ptr<StreamCall> call, bool reads)
      : broker_(broker), call_(std::move(call)) {
    call_->open(*this, reads);
  }
  TestPort(const TestPort&) = delete;
  TestPort& operator=(const TestPort&) = delete;
  /// Like gRPC's reactor, it lives until the stream has finished it.
  ~TestPort() override {
    set_slow(false);
    call_->on_cancel();
    wait([this] { return status_.has_value(); }, "the stream did not end");
  }

  void read() override {
    const std::lock_guard lock(mutex_);
    reading_ = true;
  }
  void write(grpc::ByteBuffer frame) override {
    Response response;
    EXPECT_TRUE(grpc::SerializationTraits<Response>::Deserialize(&frame, &response).ok());
    bool slow = false;
    {
      const std::lock_guard lock(mutex_);
      responses_.push_back(std::move(response));
      slow = slow_;
      unwritten_ = slow;
    }
    broker_.changed.notify_all();
    if (!slow) call_->on_written(true);
  }
  void finish(const grpc::Status& status) override {
    TurnBroker& broker = broker_;  // The port may be gone once the status is there.
    {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(status_.has_value()) << "finished twice";
      status_ = status;
    }
    broker.changed.notify_all();
  }

  template <class Request>
  void send(const Request& request) {
    wait([this] { return reading_; }, "nobody reads");
    {
      const std::lock_guard lock(mutex_);
      reading_ = false;
    }
    grpc::ByteBuffer buffer;
    bool own = false;
    ASSERT_TRUE(grpc::SerializationTraits<Request>::Serialize(request, &buffer, &own).ok());
    call_->on_read(&buffer);
  }
  /// The client closes its side.
  void half_close() {
    wait([this] { return reading_; }, "nobody reads");
    call_->on_read(nullptr);
  }
  /// The client is gone; or the stream gives up the write under way.
  void cancel() override {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      due = std::exchange(unwritten_, false);
    }
    call_->on_cancel();
    if (due) call_->on_written(false);
  }
  /// From now on a write lasts until the client ends it.
  void set_slow(bool slow) {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      slow_ = slow;
      due = !slow && std::exchange(unwritten_, false);
    }
    if (due) call_->on_written(true);
  }

  /// Lets the broker work until there are `enough` responses; returns them.
  template <class Enough>
  std::vector<Response> wait_for(Enough enough) {
    wait([&] { return enough(responses_); }, "the responses did not come");
    const std::lock_guard lock(mutex_);
    return responses_;
  }
  std::vector<Response> now() {
    const std::lock_guard lock(mutex_);
    return responses_;
  }
  grpc::Status wait_for_end() {
    wait([this] { return status_.has_value(); }, "the stream did not end");
    return status_.value_or(grpc::Status::CANCELLED);
  }
  [[nodiscard]] bool finished() {
    const std::lock_guard lock(mutex_);
    return status_.has_value();
  }

 private:
  template <class Condition>
  void wait(Condition condition, const char* otherwise) {
    broker_.turn_until(mutex_, condition, otherwise);
  }

  TurnBroker& broker_;
  std::shared_ptr<StreamCall> call_;
  std::mutex mutex_;
  std::vector<Response> responses_;
  std::optional<grpc::Status> status_;
  bool reading_ = false;
  bool slow_ = false;
  bool unwritten_ = false;
};

/// For tests only: streaming calls over a TurnBroker.
class StreamTest : public testing::Test {
 protected:
  void TearDown() override { state_->background.stop(); }

  void create(std::uint32_t partitions, const StreamSettingsPatch& settings = {}) {
    const auto done = broker_.execute(CreateStreamCommand{.stream = "s",
                                                          .partitions = partitions,
                                                          .settings = settings,
                                                          .error = {},
                                                          .description = {}});
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
  }
  /// Appends a batch of `count` records of `bytes` each.
  void append(std::uint32_t partition, int count = 1, std::size_t bytes = 10) {
    AppendCommand command;
    command.stream = "s";
    for (int i = 0; i < count; ++i) {
      NewRecord& record = command.records.emplace_back();
      record.value = std::string(bytes, 'v');
      record.partition = PartitionNumber{partition};
    }
    const auto done = broker_.execute(std::move(command));
    for (const BatchOutcome& outcome : done.record_outcomes) {
      ASSERT_FALSE(outcome.error.has_value()) << to_string(*outcome.error);
    }
  }
  /// Small segments, of which retention keeps the last ones; `pass` runs the retention.
  static StreamSettingsPatch few_segments() {
    StreamSettingsPatch settings;
    settings.segment_bytes = 4096;
    settings.retention_bytes = 8192;
    return settings;
  }
  void run_retention() {
    broker_.pass(std::chrono::seconds{11});
    broker_.turn();
  }
  /// After this, the background has done everything that was posted before.
  void let_background_finish() {
    for (int i = 0; i < 20; ++i) {
      std::mutex mutex;
      std::condition_variable changed;
      int left = 2 * static_cast<int>(limits::kBackgroundThreads);
      for (int task = left; task > 0; --task) {
        state_->background.post([&] {
          const std::lock_guard lock(mutex);
          --left;
          changed.notify_all();
        });
      }
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return left == 0; });
      lock.unlock();
      broker_.turn();
    }
  }
  Offset first_offset() {
    return broker_.execute(DescribeStreamCommand{.stream = "s", .error = {}, .description = {}})
        .description.partitions.at(0)
        .log.first;
  }

  TurnBroker broker_;
  std::shared_ptr<ServerState> state_ = std::make_shared<ServerState>(broker_, 1);
};

}  // namespace baton
