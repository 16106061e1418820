#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/grpc/api_state.h"
#include "server/grpc/calls.h"
#include "server/grpc/stream.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"
#include "storage/journal/journal.h"

namespace baton {

/// A broker of one real shard on a fake disk, which runs its rounds when the test says so, under
/// the test's clock. Calls come from any thread; turn() is the test's.
class TurnBroker final : public Broker {
 public:
  TurnBroker() { open(); }

  bool submit(std::unique_ptr<Call>& call, Admission /*admission*/) override {
    {
      const std::lock_guard lock(mutex_);
      if (refusing_) return false;
      const auto* command = std::get_if<StreamCommand>(&call->command);
      if (command != nullptr && std::holds_alternative<ConnectionDownCommand>(*command)) {
        ++connections_down_;
      }
      calls_.push_back(std::move(call));
    }
    changed.notify_all();
    return true;
  }
  bool submit_to(std::size_t /*shard*/, std::unique_ptr<Call>& call, Admission admission) override {
    return submit(call, admission);
  }
  [[nodiscard]] std::size_t shards() const override { return 1; }
  ConsumerNumber next_consumer_number() override { return ConsumerNumber{++consumers_}; }
  Ticket next_ticket() override { return Ticket{++tickets_}; }
  [[nodiscard]] ShardStats stats(std::size_t /*shard*/) const override { return shard_->stats(); }
  Status checkpoint() override { return {}; }
  [[nodiscard]] Instant now() const override { return Instant{now_.load()}; }

  /// Rounds until nobody waits for one.
  void turn() {
    do {
      std::deque<std::unique_ptr<Call>> calls;
      {
        const std::lock_guard lock(mutex_);
        calls.swap(calls_);
      }
      round(calls);
    } while (waiting() != 0);
  }
  /// A command of the test's own, done.
  template <class Wanted>
  Wanted execute(Wanted command) {
    std::optional<Wanted> result;
    baton::submit(*this, Command(std::move(command)), Admission::reserved, [&](Command* done) {
      Wanted* const answer = answer_of<Wanted>(done);
      if (answer != nullptr) result = std::move(*answer);
    });
    turn();
    return *std::move(result);
  }
  [[nodiscard]] std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }
  [[nodiscard]] std::size_t connections_down() {
    const std::lock_guard lock(mutex_);
    return connections_down_;
  }
  /// As a broker that is stopping.
  void refuse() {
    const std::lock_guard lock(mutex_);
    refusing_ = true;
  }
  void pass(Duration time) { now_ += time.count(); }

  std::condition_variable changed;  // A call came.

 private:
  void open() {
    journal_ = *open_file_journal(disk_, "journal", {.segment_bytes = 8192 * 1024});
    auto shard = Shard::recover(
        {}, {.journal = *journal_, .store = store_, .disk = disk_, .streams_folder = "streams"},
        now());
    if (!shard.has_value()) {
      ADD_FAILURE() << to_string(shard.error());
      std::abort();
    }
    shard_ = *std::move(shard);
    shard_->begin_serving(now());
  }
  void round(std::deque<std::unique_ptr<Call>>& calls) {
    ASSERT_TRUE(journal_->prepare().has_value());
    Held held = shard_->round(calls, {}, now());
    for (const auto& partition : held.streams.unsynced) ASSERT_TRUE(partition->sync().has_value());
    ASSERT_TRUE(journal_->sync().has_value());
    held.release();
    for (const std::string& folder : held.streams.removed) {
      ASSERT_TRUE(remove_partition(disk_, folder).has_value());
    }
  }

  FakeDisk disk_{1};
  FakeStore store_{std::make_shared<FakeStoreMedia>(2)};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Shard> shard_;
  std::atomic<std::int64_t> now_{1'700'000'000'000'000'000};
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> consumers_{0};
  std::mutex mutex_;
  std::deque<std::unique_ptr<Call>> calls_;
  bool refusing_ = false;
  std::size_t connections_down_ = 0;
};

/// The client's end of a Stream, without gRPC in between.
template <class Response>
class TestPort final : public StreamPort {
 public:
  TestPort(TurnBroker& broker, std::shared_ptr<Stream> stream, bool reads)
      : broker_(broker), stream_(std::move(stream)) {
    stream_->open(*this, reads);
  }
  TestPort(const TestPort&) = delete;
  TestPort& operator=(const TestPort&) = delete;
  /// As gRPC's reactor, it lives until the stream has finished it.
  ~TestPort() override {
    set_slow(false);
    stream_->on_cancel();
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
    if (!slow) stream_->on_written(true);
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
    stream_->on_read(&buffer);
  }
  /// The client has said all it had to say.
  void half_close() {
    wait([this] { return reading_; }, "nobody reads");
    stream_->on_read(nullptr);
  }
  /// The client is gone; or the stream gives up the write under way.
  void cancel() override {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      due = std::exchange(unwritten_, false);
    }
    stream_->on_cancel();
    if (due) stream_->on_written(false);
  }
  /// From now on a write takes until the client says so.
  void set_slow(bool slow) {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      slow_ = slow;
      due = !slow && std::exchange(unwritten_, false);
    }
    if (due) stream_->on_written(true);
  }

  /// Lets the broker work until `enough` of the responses; answers them.
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
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (true) {
      broker_.turn();
      std::unique_lock lock(mutex_);
      if (condition()) return;
      if (std::chrono::steady_clock::now() > deadline) {
        FAIL() << otherwise;
        return;
      }
      broker_.changed.wait_for(lock, std::chrono::milliseconds{2});
    }
  }

  TurnBroker& broker_;
  std::shared_ptr<Stream> stream_;
  std::mutex mutex_;
  std::vector<Response> responses_;
  std::optional<grpc::Status> status_;
  bool reading_ = false;
  bool slow_ = false;
  bool unwritten_ = false;
};

/// Streams of the api over a TurnBroker; for tests only.
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
  /// Appends a batch of `count` records of so many bytes.
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
  /// Small segments, of which retention keeps the last ones; `pass` lets it look.
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
  /// Whatever the background does for nobody else has been done after this.
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
  std::shared_ptr<ApiState> state_ = std::make_shared<ApiState>(broker_, 1);
};

}  // namespace baton
