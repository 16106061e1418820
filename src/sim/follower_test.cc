// Several nodes share one log: one decides, the others apply what it appended, and take over.
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"
#include "core/queue/rows.h"
#include "core/stream/record_batch.h"
#include "core/stream/records.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"
#include "sim/shared_log.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{1'700'000'000'000'000'000};
constexpr std::size_t kNodes = 3;
constexpr std::uint32_t kPartitions = 2;

class FnCall final : public Call {
 public:
  FnCall(Command wanted, std::function<void(Command&)> done)
      : Call(std::move(wanted)), done_(std::move(done)) {}
  void complete() override { done_(command); }

 private:
  std::function<void(Command&)> done_;
};

class Inbox final : public ConsumerSink {
 public:
  void deliver(std::vector<Delivery> deliveries) override {
    for (const Delivery& delivery : deliveries) tokens.push_back(delivery.token);
  }
  void close(const Error&) override {}
  std::vector<LeaseToken> tokens;
};

/// A node with its own disk and store, and its access to the shared log.
class Node {
 public:
  Node(std::shared_ptr<SharedRounds> rounds, std::uint64_t seed, SharedLogFaults faults)
      : rounds_(std::move(rounds)), random_(seed), faults_(faults) {
    wipe();
  }

  /// Everything on the disk is lost; the log still has it.
  void wipe() {
    drop();
    disk_ = std::make_unique<FakeDisk>(random_.next());
    media_ = std::make_shared<FakeStoreMedia>(random_.next());
    open();
  }
  /// The process ends, and a new one follows from the last checkpoint. A node that led may have
  /// records in its files that the log does not have, so it begins again from the log.
  void restart() {
    if (shard_ != nullptr) return wipe();
    drop();
    media_->crash();
    open();
  }
  void follow() {
    if (shard_ != nullptr) return;
    const Status followed = replica_->follow(*log_);
    ASSERT_TRUE(followed.has_value()) << to_string(followed.error());
  }
  /// False if another node was faster, or no answer came.
  bool lead(Instant now) {
    follow();
    auto shard = Shard::lead(options_, *log_, std::move(replica_), now);
    if (!shard.has_value()) {
      wipe();
      return false;
    }
    shard_ = *std::move(shard);
    shard_->begin_serving(std::max(now, shard_->started_at()));
    durable_ = shard_->replica().position();
    inbox_ = std::make_shared<Inbox>();
    AttachCommand attach;
    attach.queue = "q";
    attach.consumer = ConsumerNumber{++consumers_};
    attach.consumer_id = "consumer";
    attach.in_flight_max = 5;
    attach.sink = inbox_;
    submit(QueueCommand(std::move(attach)), [](Command&) {});
    return true;
  }
  void submit(Command command, std::function<void(Command&)> done) {
    calls_.push_back(std::make_unique<FnCall>(std::move(command), std::move(done)));
  }
  void round(Instant now) {
    Held held = shard_->round(calls_, std::exchange(results_, {}), now);
    if (shard_->fenced()) return wipe();
    held_.push_back(std::move(held));
  }
  /// Waits for the log, and releases the effects of durable rounds.
  void sync() {
    const Result<Position> durable = unknown_ ? log_->settle() : log_->sync();
    unknown_ = !durable.has_value() && durable.error().code == Errc::unavailable;
    if (unknown_) return;
    if (!durable.has_value()) {
      EXPECT_EQ(durable.error().code, Errc::position_taken) << to_string(durable.error());
      ++deposed;
      return wipe();
    }
    durable_ = *durable;
    while (!held_.empty() && held_.front().position < durable_) {
      Held held = std::move(held_.front());
      held_.pop_front();
      check_is_logged(held.position);
      for (const auto& partition : held.unsynced) ASSERT_TRUE(partition->sync().has_value());
      held.release();
      for (const StoreJob& job : held.jobs) results_.push_back(*run_store_job(*store_, job));
    }
  }
  void checkpoint(Instant now) {
    Replica& replica = *replica_now();
    replica.request_checkpoint();
    const Position durable = shard_ != nullptr ? durable_ : replica.position();
    auto job = shard_ != nullptr ? shard_->next_checkpoint(durable, now)
                                 : replica.next_checkpoint(durable, 0, false, now);
    if (!job.has_value()) return;
    ASSERT_TRUE(run_checkpoint_job(*store_, *job).has_value());
    replica.checkpoint_done(job->position, now);
  }

  [[nodiscard]] bool leads() const { return shard_ != nullptr; }
  [[nodiscard]] bool waits() const {
    return unknown_ || !held_.empty() || !calls_.empty() || !results_.empty();
  }
  [[nodiscard]] std::vector<LeaseToken> take_tokens() { return std::exchange(inbox_->tokens, {}); }
  [[nodiscard]] Position position() { return replica_now()->position(); }
  [[nodiscard]] Position checkpointed() { return replica_now()->checkpointed(); }

  /// All rows of the checkpoint except those about the shard's own position and clock.
  [[nodiscard]] std::map<std::string, std::string> rows() const {
    std::map<std::string, std::string> all;
    for (const TableName& table : kShardTables) {
      if (table.table == tables::kState) continue;
      const auto found = store_->scan({.table = table.table,
                                       .begin = {},
                                       .end = std::string(64, '\xff'),
                                       .rows_max = 100'000,
                                       .bytes_max = 1024 * limits::kMiB});
      for (const Row& row : *found) {
        std::string& value = all[fmt::format("{}/{}", table.name, row.key)];
        value = row.value;
        // The first sequence of a key is a bound, which may be lower at one node than at another.
        if (table.table == tables::kKeys)
          value = fmt::format("{}", decode_key_row(row.value)->count);
      }
    }
    return all;
  }
  /// The contents of its partitions.
  [[nodiscard]] std::string records() {
    std::string all;
    for (std::uint32_t number = 0; number < kPartitions; ++number) {
      const auto log =
          log_->open_partition({StreamId{1}, PartitionNumber{number}},
                               {.options = {}, .synced_end = Offset{0}, .now = kStart});
      if (!log.has_value()) continue;
      PartitionReader reader = (*log)->reader();
      all += fmt::format("partition {} ends at {}: ", number, (*log)->next().value);
      Offset at{0};
      while (at < (*log)->next()) {
        const auto chunk = reader.read(at, std::size_t{1} << 20U);
        if (!chunk.has_value() || chunk->bytes.empty()) break;
        all += chunk->bytes;
        at = chunk->next;
      }
    }
    return all;
  }
  void close_partitions() {
    drop();
    log_ = make_log();
  }

  std::uint64_t deposed = 0;

 private:
  void drop() {
    // Waiting calls and effects are void.
    held_.clear();
    shard_.reset();
    replica_.reset();
    calls_.clear();
    results_.clear();
    unknown_ = false;
  }
  std::unique_ptr<SharedLog> make_log() {
    return std::make_unique<SharedLog>(rounds_, *PartitionFolders::open(*disk_, "streams"),
                                       Random(random_.next()), faults_);
  }
  void open() {
    log_ = make_log();
    store_ = std::make_unique<FakeStore>(media_);
    replica_ = Shard::make_replica(options_, {.log = *log_, .store = *store_});
    const Status loaded = replica_->load();
    ASSERT_TRUE(loaded.has_value()) << to_string(loaded.error());
  }
  Replica* replica_now() {
    return shard_ != nullptr ? const_cast<Replica*>(&shard_->replica()) : replica_.get();
  }
  /// A released effect depends on a round that is in the shared log.
  void check_is_logged(Position position) {
    ASSERT_LE(position.value, rounds_->entries.size());
    ASSERT_EQ(rounds_->entries[position.value - 1].epoch, shard_->boot())
        << "a node confirmed what another one appended";
  }

  std::shared_ptr<SharedRounds> rounds_;
  Random random_;
  SharedLogFaults faults_;
  Shard::Options options_;
  std::unique_ptr<FakeDisk> disk_;
  std::shared_ptr<FakeStoreMedia> media_;
  std::unique_ptr<SharedLog> log_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<Shard> shard_;
  std::shared_ptr<Inbox> inbox_;
  std::deque<std::unique_ptr<Call>> calls_;
  std::vector<StoreResult> results_;
  std::deque<Held> held_;
  Position durable_{1};
  bool unknown_ = false;
  std::uint64_t consumers_ = 0;
};

/// Draws the next event: for clients, nodes and the log.
class FollowerWorld {
 public:
  explicit FollowerWorld(std::uint64_t seed) : random_(seed) {
    const SharedLogFaults faults{.request_lost = random_.below(25),
                                 .answer_lost = random_.below(25),
                                 .read_short = random_.below(40)};
    for (std::size_t i = 0; i < kNodes; ++i) {
      nodes_.push_back(std::make_unique<Node>(rounds_, random_.next(), faults));
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) step();
    settle();
  }
  [[nodiscard]] std::uint64_t confirmed() const { return confirmed_; }
  [[nodiscard]] std::uint64_t deposed() const {
    std::uint64_t count = 0;
    for (const auto& node : nodes_) count += node->deposed;
    return count;
  }
  [[nodiscard]] std::uint64_t takeovers() const { return takeovers_; }

 private:
  void step() {
    now_ = now_ + milliseconds{1 + random_.below(300)};
    Node& node = *nodes_[random_.below(kNodes)];
    const std::uint64_t what = random_.below(100);
    if (what < 3) {
      if (!node.leads()) takeovers_ += node.lead(now_) ? 1 : 0;
    } else if (what < 5) {
      node.restart();
    } else if (what < 10) {
      node.checkpoint(now_);
    } else if (what < 40) {
      if (node.leads()) {
        ask(node);
      } else {
        node.follow();
      }
    } else if (node.leads()) {
      if (what < 70) {
        node.round(now_);
      } else {
        node.sync();
      }
    } else {
      node.follow();
    }
  }

  void ask(Node& node) {
    const auto count = [this](Command&) { ++confirmed_; };
    switch (random_.below(7)) {
      case 0:
        node.submit(QueueCommand(CreateQueueCommand{
                        .queue = "q", .settings = {}, .error = {}, .description = {}}),
                    count);
        node.submit(StreamCommand(CreateStreamCommand{.stream = "s",
                                                      .partitions = kPartitions,
                                                      .settings = {},
                                                      .error = {},
                                                      .description = {}}),
                    count);
        node.submit(KvCommand(CreateBucketCommand{
                        .bucket = "b", .settings = {}, .error = {}, .description = {}}),
                    count);
        break;
      case 1:
      case 2: {
        EnqueueCommand command{.queue = "q", .messages = {}, .outcomes = {}};
        command.messages.emplace_back().payload = std::string(random_.below(200), 'x');
        command.messages.back().fairness_key = fmt::format("key {}", random_.below(3));
        node.submit(QueueCommand(std::move(command)), count);
        break;
      }
      case 3:
        node.submit(
            QueueCommand(AckCommand{.queue = "q", .tokens = node.take_tokens(), .outcomes = {}}),
            count);
        break;
      case 4:
      case 5: {
        AppendCommand command;
        command.stream = "s";
        command.batches.push_back(
            {PartitionNumber{static_cast<std::uint32_t>(random_.below(kPartitions))}, batch()});
        node.submit(StreamCommand(std::move(command)), count);
        break;
      }
      default: {
        KvPutCommand command;
        command.request.bucket = "b";
        command.request.key = fmt::format("key {}", random_.below(5));
        command.request.value = std::to_string(random_.next());
        node.submit(KvCommand(std::move(command)), count);
      }
    }
  }

  std::string batch() {
    BatchBuilder builder;
    const std::string value = std::to_string(random_.next());
    EXPECT_TRUE(builder
                    .add({.key = std::nullopt,
                          .value = value,
                          .headers = {},
                          .timestamp = TimestampMs{1'700'000'000'000}})
                    .has_value());
    return *builder.finish(Compression::none, std::nullopt);
  }

  /// No more requests: a node that leads and still can finishes its rounds; then all nodes must be
  /// equal.
  void settle() {
    // A deposed owner that appends nothing does not learn that it is deposed.
    for (const auto& node : nodes_) {
      if (!node->leads()) continue;
      node->submit(KvCommand(CreateBucketCommand{
                       .bucket = "last", .settings = {}, .error = {}, .description = {}}),
                   [](Command&) {});
    }
    for (int i = 0; i < 200; ++i) {
      now_ = now_ + milliseconds{10};
      for (const auto& node : nodes_) {
        if (node->leads() && node->waits()) node->round(now_);
        if (node->leads()) node->sync();
        if (!node->leads()) node->follow();
      }
    }
    const Position end = rounds_->next();
    for (const auto& node : nodes_) {
      ASSERT_EQ(node->position(), end);
      // The first checkpoint may have been sealed some rounds ago.
      node->checkpoint(now_ + seconds{1});
      node->checkpoint(now_ + seconds{2});
      ASSERT_EQ(node->checkpointed(), end);
    }
    const auto rows = nodes_.front()->rows();
    std::vector<std::string> records;
    for (const auto& node : nodes_) {
      expect_same(rows, node->rows());
      node->close_partitions();
      records.push_back(node->records());
    }
    for (const std::string& other : records) EXPECT_EQ(hash64(other), hash64(records.front()));
  }

  static void expect_same(const std::map<std::string, std::string>& left,
                          const std::map<std::string, std::string>& right) {
    for (const auto& [key, value] : left) {
      const auto other = right.find(key);
      if (other == right.end()) {
        ADD_FAILURE() << "only in one: " << testing::PrintToString(key);
      } else {
        EXPECT_EQ(testing::PrintToString(value), testing::PrintToString(other->second))
            << testing::PrintToString(key);
      }
    }
    EXPECT_EQ(left.size(), right.size());
  }

  Random random_;
  std::shared_ptr<SharedRounds> rounds_ = std::make_shared<SharedRounds>();
  std::vector<std::unique_ptr<Node>> nodes_;
  Instant now_ = kStart;
  std::uint64_t confirmed_ = 0;
  std::uint64_t takeovers_ = 0;
};

TEST(Followers, ReachTheStateOfWhoeverDecides) {
  std::uint64_t confirmed = 0;
  std::uint64_t deposed = 0;
  std::uint64_t takeovers = 0;
  for (std::uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    FollowerWorld world(seed);
    world.run(600);
    confirmed += world.confirmed();
    deposed += world.deposed();
    takeovers += world.takeovers();
  }
  // Without enough events the test would prove nothing.
  EXPECT_GT(confirmed, 10'000U);
  EXPECT_GT(takeovers, 1000U);
  EXPECT_GT(deposed, 200U);
}

}  // namespace
}  // namespace baton
