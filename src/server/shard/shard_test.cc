#include "server/shard/shard.h"

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/shard/shard_fixture.h"

namespace baton {
namespace {

using std::chrono::seconds;

class Inbox final : public ConsumerSink {
 public:
  void deliver(std::vector<Delivery> deliveries) override {
    for (Delivery& delivery : deliveries) got.push_back(std::move(delivery));
  }
  void close(const Error&) override {}
  std::vector<Delivery> got;
};

/// A shard with queues.
class ShardTest : public ShardOnFakes {
 protected:
  void submit(QueueCommand command) {
    calls_.push_back(std::make_unique<DoneCall<QueueCommand>>(std::move(command), done_));
  }

  /// Runs one round, makes it durable and releases it. Its work on the store is done before the
  /// next round.
  void round() {
    Held held = shard_->round(calls_, std::exchange(results_, {}), now_);
    ASSERT_TRUE(log_->sync().has_value());
    held.release();
    for (StoreJob& job : held.jobs) waiting_jobs_.push_back(std::move(job));
    while (!waiting_jobs_.empty()) {
      auto result = run_store_job(*store_, waiting_jobs_.front());
      if (!result.has_value()) break;
      results_.push_back(*std::move(result));
      waiting_jobs_.pop_front();
    }
    ASSERT_TRUE(log_->prepare().has_value());
  }

  void create(const std::string& queue, QueueSettingsPatch settings = {}) {
    submit(CreateQueueCommand{
        .queue = queue, .settings = std::move(settings), .error = {}, .description = {}});
    round();
  }

  void send(const std::string& queue, std::size_t count, std::size_t bytes) {
    EnqueueCommand command{.queue = queue, .messages = {}, .outcomes = {}};
    for (std::size_t i = 0; i < count; ++i) {
      command.messages.emplace_back().payload = std::string(bytes, 'x');
    }
    submit(std::move(command));
  }

  std::shared_ptr<Inbox> attach(const std::string& queue, std::uint32_t in_flight_max) {
    auto sink = std::make_shared<Inbox>();
    AttachCommand command;
    command.queue = queue;
    command.consumer = ConsumerNumber{++consumers_};
    command.consumer_id = "consumer " + std::to_string(consumers_);
    command.in_flight_max = in_flight_max;
    command.sink = sink;
    submit(std::move(command));
    return sink;
  }

  std::vector<QueueCommand> done_;
  std::vector<StoreResult> results_;
  std::deque<StoreJob> waiting_jobs_;
  std::uint64_t consumers_ = 0;
};

// A round has room for deadlines, however many calls wait for the next one.
TEST_F(ShardTest, LeasesExpireWhileMoreCallsWaitThanARoundTakes) {
  options_.round_bytes = 4096;
  start();
  QueueSettingsPatch brief;
  brief.visibility_timeout = Duration{seconds{1}};
  brief.retry_delay = Duration{0};
  create("q", brief);
  send("q", 1, 10);
  const auto first = attach("q", 1);
  round();
  ASSERT_EQ(first->got.size(), 1U);
  const auto second = attach("q", 1);
  round();
  create("busy");
  for (int i = 0; i < 100; ++i) send("busy", 1, 1000);
  now_ = now_ + seconds{1};
  round();
  EXPECT_GT(calls_.size(), 90U) << "the load does not outlast the round";
  ASSERT_EQ(first->got.size() + second->got.size(), 2U);
  const Delivery& again = second->got.empty() ? first->got.back() : second->got.back();
  EXPECT_EQ(again.attempt, 2U);
}

// A broker must start before queues can be purged: rows that recovery has no room to spill wait in
// memory.
TEST_F(ShardTest, AFullStoreDoesNotKeepAShardFromStarting) {
  options_.machine.payload_budget_bytes = 64 * 1024;
  start();
  create("deep");
  for (int i = 0; i < 20; ++i) {
    send("deep", 10, 4096);
    round();
  }
  ASSERT_GT(shard_->stats().spilled_messages, 0U);
  media_->crash();
  media_->set_disk_full(true);
  calls_.clear();
  results_.clear();
  start();
  EXPECT_EQ(queues_of(shard_->replica().machines()).list("deep").at(0).stats.ready, 200U);
  round();
  EXPECT_FALSE(waiting_jobs_.empty()) << "nothing waits for room, so the test shows nothing";

  media_->set_disk_full(false);
  const auto consumer = attach("deep", 1000);
  for (int i = 0; i < 1000 && consumer->got.size() < 200; ++i) round();
  EXPECT_EQ(consumer->got.size(), 200U);
  EXPECT_EQ(shard_->stats().rows_missing, 0U);
}

// Acks and purges make room only once a checkpoint has released their journal.
TEST_F(ShardTest, OnAFullDiskACheckpointComesSoon) {
  start();
  create("q");
  send("q", 1, 10);
  round();
  const Instant idle = shard_->next_deadline();
  EXPECT_GE(idle, now_ + seconds{30});
  shard_->set_shortage(Shard::Shortage::disk);
  EXPECT_LE(shard_->next_deadline(), now_ + seconds{1});
  now_ = now_ + seconds{1};
  EXPECT_TRUE(shard_->next_checkpoint(log_->next(), now_).has_value());
}

// Rows that are removed while the disk is full must not be written first, or the disk stays full.
TEST_F(ShardTest, ACheckpointThatIsGivenUpGoesIntoTheNextOne) {
  start();
  create("q");
  send("q", 3, 10);
  const auto consumer = attach("q", 10);
  round();
  round();
  ASSERT_EQ(consumer->got.size(), 3U);
  shard_->request_checkpoint();
  auto given_up = shard_->next_checkpoint(log_->next(), now_);
  ASSERT_TRUE(given_up.has_value());
  EXPECT_FALSE(shard_->next_checkpoint(log_->next(), now_).has_value()) << "one at a time";
  shard_->checkpoint_given_up(*given_up);

  submit(AckCommand{.queue = "q", .tokens = {consumer->got[0].token}, .outcomes = {}});
  round();
  const auto job = shard_->next_checkpoint(log_->next(), now_);
  ASSERT_TRUE(job.has_value()) << "it is due at once";
  EXPECT_GT(job->position, given_up->position);
  ASSERT_TRUE(run_checkpoint_job(*store_, *job).has_value());
  shard_->checkpoint_done(job->position, now_);
  EXPECT_EQ(shard_->replica().checkpoints_done(), shard_->replica().checkpoints_sealed());
  ASSERT_TRUE(log_->trim(job->position).has_value());

  start();
  submit(DescribeQueueCommand{.queue = "q", .error = {}, .description = {}});
  round();
  const auto& described = std::get<DescribeQueueCommand>(done_.back());
  ASSERT_FALSE(described.error.has_value());
  EXPECT_EQ(described.description.stats.ready + described.description.stats.leased, 2U);
}

// The journal's segments bound a round: a command that no round can hold fails alone, not the
// broker.
TEST_F(ShardTest, AnAdditionLargerThanARoundIsRefusedAndOthersTakeRoundsOfTheirOwn) {
  start();  // With segments of 16 MiB.
  create("q");
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  send("q", 20, kMiB);
  send("q", 7, kMiB);
  send("q", 7, kMiB);
  round();
  while (!calls_.empty() || shard_->has_work()) round();
  ASSERT_EQ(done_.size(), 4U);
  const auto& refused = std::get<EnqueueCommand>(done_[1]).outcomes;
  ASSERT_EQ(refused.size(), 20U);
  EXPECT_EQ(refused[0].error->code, Errc::invalid_argument);
  EXPECT_NE(refused[0].error->text.find("send fewer messages at a time"), std::string::npos)
      << refused[0].error->text;
  for (const std::size_t i : {2U, 3U}) {
    EXPECT_FALSE(std::get<EnqueueCommand>(done_[i]).outcomes.at(6).error.has_value());
  }
}

TEST_F(ShardTest, AnAdditionThatFindsNoRoomOnAFullDiskIsRefusedAndALeaseIsNot) {
  start();
  create("q");
  send("q", 1, 10);
  round();
  shard_->set_shortage(Shard::Shortage::disk);
  const std::uint64_t room = log_->room().additions;
  send("q", 1, 10);
  for (std::uint64_t taken = 0; taken < room; taken += std::uint64_t{1} << 20U) {
    send("q", 1, std::uint64_t{1} << 20U);
  }
  const auto consumer = attach("q", 1);
  disk_.set_capacity(disk_.bytes_used());
  Held held = shard_->round(calls_, {}, now_);
  while (!calls_.empty()) {
    held.release();
    held = shard_->round(calls_, {}, now_);
  }
  ASSERT_TRUE(log_->sync().has_value());
  held.release();
  std::size_t refused = 0;
  for (const QueueCommand& command : done_) {
    const auto* enqueue = std::get_if<EnqueueCommand>(&command);
    if (enqueue == nullptr || !enqueue->outcomes.at(0).error.has_value()) continue;
    EXPECT_EQ(enqueue->outcomes[0].error->code, Errc::disk_full);
    ++refused;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(consumer->got.size(), 1U);
}

}  // namespace
}  // namespace baton
