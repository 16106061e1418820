#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "core/stream/records.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"

/// Streams of one shard under crashes between any two steps: rounds, fsyncs of partitions and of
/// the journal, spills and checkpoints. Producers are idempotent and send again what was not
/// confirmed; consumers hold seats, store offsets and step down.
namespace baton {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kPartitions = 2;
constexpr int kProducers = 2;
constexpr int kConsumers = 3;
constexpr std::uint64_t kSteps = 150;

std::uint64_t seeds_wanted() { return std::getenv("BATON_LONG") != nullptr ? 3000 : 200; }

class DoneCall final : public Call {
 public:
  DoneCall(StreamCommand wanted, std::function<void(StreamCommand&)> done)
      : Call(std::move(wanted)), done_(std::move(done)) {}
  void complete() override { done_(std::get<StreamCommand>(command)); }

 private:
  std::function<void(StreamCommand&)> done_;
};

/// One producer's batches to one partition, in order. Those before `confirmed` are in the log.
struct Lane {
  std::vector<std::string> batches;
  std::size_t confirmed = 0;
  std::size_t sent = 0;
};

struct Holding {
  Generation epoch;
  std::uint64_t offset = 0;
};

class World;

/// One consumer: answers everything it is told, at once or later.
class Consumer final : public SeatSink {
 public:
  Consumer(World& world, int number) : world_(world), number_(number) {}
  void told(const CoordinatorEffects::Effect& effect) override;

  World& world_;
  int number_;
  ConnectionId connection;
  bool connected = false;
  std::map<std::uint32_t, Holding> seats;
  std::map<std::uint32_t, Generation> owed;  // Step-downs that were not answered yet.
};

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), random_(seed), disk_(seed + 1) {
    media_ = std::make_shared<FakeStoreMedia>(seed + 2);
    settings_.segment_bytes = 4096 + 4096 * random_.below(4);
    if (random_.chance(1, 3)) {
      settings_.fsync = FsyncMode{.kind = FsyncMode::Kind::never, .interval = {}};
    }
    for (int i = 0; i < kConsumers; ++i) {
      consumers_.push_back(std::make_shared<Consumer>(*this, i));
    }
  }

  void run() {
    start();
    for (std::uint64_t step = 0; step < kSteps && !failed(); ++step) {
      act();
      now_ = now_ + milliseconds{static_cast<std::int64_t>(random_.below(400))};
      if (random_.chance(1, 20)) crash();
    }
    if (failed()) return;
    settle();
    check_logs();
  }

  [[nodiscard]] bool failed() const { return testing::Test::HasFailure(); }
  Random& random() { return random_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

  /// A seat was given: its epoch only grows, no other consumer has the seat, and delivery begins at
  /// the stored offset.
  void check_activation(const Consumer& consumer, const CoordinatorEffects::Activate& told) {
    const std::uint32_t partition = told.group.partition;
    Generation& last = generations_[partition];
    EXPECT_GT(told.generation, last) << "seed " << seed_;
    last = told.generation;
    for (const auto& other : consumers_) {
      if (other->number_ == consumer.number_ || !other->connected) continue;
      EXPECT_FALSE(other->seats.contains(partition)) << "two are active; seed " << seed_;
    }
    const std::uint64_t offset = told.offset.has_value() ? told.offset->value : 0;
    EXPECT_GE(offset, stored_[partition]) << "a stored offset was forgotten; seed " << seed_;
  }

 private:
  void start() {
    shard_.reset();
    log_.reset();
    calls_.clear();
    held_.clear();
    results_.clear();
    checkpoint_.reset();
    auto log = open_local_log(disk_, "journal", "streams",
                              {.segment_bytes = 8192 * 1024, .spares_max = 2});
    ASSERT_TRUE(log.has_value()) << to_string(log.error()) << "; seed " << seed_;
    log_ = *std::move(log);
    store_ = std::make_unique<FakeStore>(media_);
    Shard::Options options;
    options.checkpoint_interval = milliseconds{1500};
    options.small_round_bytes = 64 * 1024;
    auto shard = Shard::recover(options, {.log = *log_, .store = *store_}, now_);
    ASSERT_TRUE(shard.has_value()) << to_string(shard.error()) << "; seed " << seed_;
    shard_ = *std::move(shard);
    now_ = std::max(now_, shard_->started_at());
    shard_->begin_serving(now_);
    for (Lane& lane : lanes_) lane.sent = lane.confirmed;
    for (const auto& consumer : consumers_) forget(*consumer);
    submit(CreateStreamCommand{.stream = "s",
                               .partitions = kPartitions,
                               .settings = patch(),
                               .error = {},
                               .description = {}},
           [](StreamCommand&) {});
  }

  [[nodiscard]] StreamSettingsPatch patch() const {
    StreamSettingsPatch patch;
    patch.segment_bytes = settings_.segment_bytes;
    patch.fsync = settings_.fsync;
    return patch;
  }

  static void forget(Consumer& consumer) {
    consumer.connected = false;
    consumer.seats.clear();
    consumer.owed.clear();
  }

  void crash() {
    // Without fsync only a power loss loses records, and the operator chose that.
    if (settings_.fsync.kind == FsyncMode::Kind::always) {
      disk_.crash();
    } else {
      disk_.kill();
    }
    media_->crash();
    start();
  }

  template <class Wanted>
  void submit(Wanted command, std::function<void(StreamCommand&)> done) {
    calls_.push_back(
        std::make_unique<DoneCall>(StreamCommand(std::move(command)), std::move(done)));
  }

  /// Does one of the many things that could happen now.
  void act() {
    switch (random_.below(9)) {
      case 0:
      case 1: return send();
      case 2:
      case 3: return round();
      case 4: return sync_partitions();
      case 5: return release();
      case 6: return visit_consumer();
      case 7: return checkpoint();
      default: return do_job();
    }
  }

  Lane& lane_of(int producer, std::uint32_t partition) {
    return lanes_[static_cast<std::size_t>(producer) * kPartitions + partition];
  }

  void send() {
    const int producer = static_cast<int>(random_.below(kProducers));
    const auto partition = static_cast<std::uint32_t>(random_.below(kPartitions));
    Lane& lane = lane_of(producer, partition);
    if (lane.sent - lane.confirmed >= 5) return;
    if (lane.sent == lane.batches.size()) lane.batches.push_back(make_batch(producer, lane));
    const std::size_t number = lane.sent++;
    AppendCommand command;
    command.stream = "s";
    command.batches.push_back({PartitionNumber{partition}, lane.batches[number]});
    submit(std::move(command), [this, &lane, number](StreamCommand& done) {
      const BatchOutcome& outcome = std::get<AppendCommand>(done).outcomes.at(0);
      ASSERT_FALSE(outcome.error.has_value())
          << to_string(*outcome.error) << "; seed " << seed_ << " batch " << number;
      lane.confirmed = std::max(lane.confirmed, number + 1);
    });
  }

  /// The n-th batch of a lane holds the number n, three times.
  std::string make_batch(int producer, const Lane& lane) const {
    BatchBuilder builder;
    const std::size_t number = lane.batches.size();
    const std::string value = fmt::format("{} {}", producer, number);
    const std::string padding(random_padding(number), 'x');
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(builder
                      .add({.key = value,
                            .value = padding,
                            .headers = {},
                            .timestamp = TimestampMs{1'700'000'000'000}})
                      .has_value());
    }
    const ProducerStamp stamp{.id = ProducerId{1000 + producer},
                              .epoch = ProducerEpoch{0},
                              .sequence = Sequence32{static_cast<std::int32_t>(3 * number)}};
    auto batch = builder.finish(Compression::none, stamp);
    EXPECT_TRUE(batch.has_value());
    return *std::move(batch);
  }
  [[nodiscard]] static std::size_t random_padding(std::size_t number) {
    return 20 + number * 97 % 500;
  }

  void round() {
    if (!log_->prepare().has_value()) return;
    Held held = shard_->round(calls_, std::exchange(results_, {}), now_);
    held_.push_back(std::move(held));
  }

  void sync_partitions() {
    for (const Held& held : held_) {
      for (const auto& partition : held.unsynced) {
        ASSERT_TRUE(partition->sync().has_value());
      }
    }
  }

  /// As the releasing thread does it: partitions, journal, and only then the waiting calls.
  void release() {
    if (held_.empty()) return;
    sync_partitions();
    if (random_.chance(1, 10)) return;  // A crash may come between the two.
    ASSERT_TRUE(log_->sync().has_value());
    durable_ = log_->next();
    for (Held& held : std::exchange(held_, {})) {
      held.release();
      for (StoreJob& job : held.jobs) jobs_.push_back(std::move(job));
      for (const PartitionName& name : held.removed) {
        ASSERT_TRUE(log_->remove_partition(name).has_value());
      }
    }
  }

  void do_job() {
    if (jobs_.empty()) return;
    auto result = run_store_job(*store_, jobs_.front());
    jobs_.pop_front();
    if (result.has_value()) results_.push_back(*std::move(result));
  }

  void checkpoint() {
    if (!checkpoint_.has_value()) {
      checkpoint_ = shard_->next_checkpoint(durable_, now_);
      return;
    }
    const Position position = checkpoint_->position;
    ASSERT_TRUE(run_checkpoint_job(*store_, *checkpoint_).has_value());
    checkpoint_.reset();
    shard_->checkpoint_done(position, now_);
    ASSERT_TRUE(log_->trim(position).has_value());
  }

  void visit_consumer() {
    Consumer& consumer = *consumers_[random_.below(kConsumers)];
    if (!consumer.connected) return connect(consumer);
    if (!consumer.owed.empty()) return answer(consumer);
    if (random_.chance(1, 6)) {
      forget(consumer);
      return submit(ConnectionDownCommand{.stream = "s", .connection = consumer.connection},
                    [](StreamCommand&) {});
    }
    for (auto& [partition, seat] : consumer.seats) advance(consumer, partition, seat);
  }

  void connect(Consumer& consumer) {
    consumer.connected = true;
    consumer.connection = {NodeId{1}, ConnectionNumber{++connections_}};
    SubscribeCommand command;
    command.stream = "s";
    command.group = "g";
    command.single_active = true;
    command.member = {consumer.connection, SubscriptionId{1}};
    command.ticket = Ticket{connections_};
    command.sink = consumers_[static_cast<std::size_t>(consumer.number_)];
    submit(std::move(command), [this](StreamCommand& done) {
      const auto& subscribed = std::get<SubscribeCommand>(done);
      ASSERT_FALSE(subscribed.error.has_value())
          << to_string(*subscribed.error) << "; seed " << seed_;
      for (const auto& part : subscribed.subscribed) {
        readers_.insert_or_assign(part.partition.value, part.opened->reader());
      }
    });
  }

  /// Reads a little, and stores its position.
  void advance(const Consumer& consumer, std::uint32_t partition, Holding& seat) {
    const auto reader = readers_.find(partition);
    if (reader == readers_.end()) return;
    const auto read = reader->second.read(Offset{static_cast<std::int64_t>(seat.offset)}, 2000);
    if (!read.has_value()) return;  // A reader of a former life.
    seat.offset = static_cast<std::uint64_t>(read->next.value);
    store(consumer, partition, seat);
  }

  void store(const Consumer& consumer, std::uint32_t partition, const Holding& seat) {
    StoreOffsetCommand command;
    command.stream = "s";
    command.request = {
        .group = {"s", partition, "g"},
        .holder = {{.member = {consumer.connection, SubscriptionId{1}}, .epoch = seat.epoch}},
        .offset = GroupOffset{seat.offset}};
    submit(std::move(command), [this, partition, offset = seat.offset](StreamCommand& done) {
      const auto& stored = std::get<StoreOffsetCommand>(done);
      if (stored.error.has_value()) {
        EXPECT_EQ(stored.error->code, Errc::stale_epoch)
            << to_string(*stored.error) << "; seed " << seed_;
      } else {
        stored_[partition] = std::max(stored_[partition], offset);
      }
    });
  }

  void answer(Consumer& consumer) {
    for (const auto& [partition, generation] : std::exchange(consumer.owed, {})) {
      const auto seat = consumer.seats.find(partition);
      if (seat != consumer.seats.end()) {
        store(consumer, partition, seat->second);
        consumer.seats.erase(seat);
      }
      submit(StepDownReplyCommand{.stream = "s",
                                  .partition = PartitionNumber{partition},
                                  .group = "g",
                                  .member = {consumer.connection, SubscriptionId{1}},
                                  .generation = generation},
             [](StreamCommand&) {});
    }
  }

  /// No more crashes: everything that was sent is confirmed, and every partition has its consumer.
  void settle() {
    const auto all_confirmed = [this] {
      return std::ranges::all_of(
          lanes_, [](const Lane& lane) { return lane.confirmed == lane.batches.size(); });
    };
    for (int i = 0; i < 400 && !failed(); ++i) {
      for (const auto& consumer : consumers_) {
        if (!consumer->connected) connect(*consumer);
        answer(*consumer);
      }
      for (int producer = 0; producer < kProducers; ++producer) {
        for (std::uint32_t partition = 0; partition < kPartitions; ++partition) {
          Lane& lane = lane_of(producer, partition);
          if (lane.sent < lane.batches.size()) resend(lane, partition);
        }
      }
      round();
      release();
      now_ = now_ + milliseconds{10};
    }
    EXPECT_TRUE(all_confirmed()) << "seed " << seed_;
    for (std::uint32_t partition = 0; partition < kPartitions; ++partition) {
      const auto holders = std::ranges::count_if(
          consumers_, [&](const auto& consumer) { return consumer->seats.contains(partition); });
      EXPECT_EQ(holders, 1) << "partition " << partition << "; seed " << seed_;
    }
  }

  void resend(Lane& lane, std::uint32_t partition) {
    if (lane.sent - lane.confirmed >= 5) return;
    const std::size_t number = lane.sent++;
    AppendCommand command;
    command.stream = "s";
    command.batches.push_back({PartitionNumber{partition}, lane.batches[number]});
    submit(std::move(command), [this, &lane, number](StreamCommand& done) {
      const BatchOutcome& outcome = std::get<AppendCommand>(done).outcomes.at(0);
      EXPECT_FALSE(outcome.error.has_value()) << to_string(*outcome.error) << "; seed " << seed_;
      lane.confirmed = std::max(lane.confirmed, number + 1);
    });
  }

  /// Every batch of every lane must be there, in order, once.
  void check_logs() {
    for (std::uint32_t partition = 0; partition < kPartitions; ++partition) {
      const auto reader = readers_.find(partition);
      ASSERT_NE(reader, readers_.end());
      std::map<std::string, std::vector<std::string>> found;
      Offset offset{0};
      while (offset < reader->second.next()) {
        const auto read = reader->second.read(offset, 100'000);
        ASSERT_TRUE(read.has_value()) << to_string(read.error()) << "; seed " << seed_;
        collect(read->bytes, found);
        offset = read->next;
      }
      for (int producer = 0; producer < kProducers; ++producer) {
        const std::size_t count = lane_of(producer, partition).batches.size();
        std::vector<std::string> wanted;
        for (std::size_t i = 0; i < 3 * count; ++i) {
          wanted.push_back(fmt::format("{} {}", producer, i / 3));
        }
        EXPECT_EQ(found[std::to_string(producer)], wanted)
            << "partition " << partition << "; seed " << seed_;
      }
    }
  }

  static void collect(std::string_view bytes,
                      std::map<std::string, std::vector<std::string>>& found) {
    while (!bytes.empty()) {
      const auto batch = BatchView::parse(bytes);
      ASSERT_TRUE(batch.has_value());
      ASSERT_TRUE(batch->check_crc().has_value());
      auto records = RecordReader::open(*batch);
      ASSERT_TRUE(records.has_value());
      RecordView record;
      while (*records->next(record)) {
        found[std::string(record.key->substr(0, 1))].emplace_back(*record.key);
      }
      bytes.remove_prefix(batch->bytes().size());
    }
  }

  std::uint64_t seed_;
  Random random_;
  FakeDisk disk_;
  StreamSettings settings_;
  std::shared_ptr<FakeStoreMedia> media_;
  std::unique_ptr<ShardLog> log_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<Shard> shard_;
  std::deque<std::unique_ptr<Call>> calls_;
  std::vector<Held> held_;
  std::vector<StoreResult> results_;
  std::deque<StoreJob> jobs_;
  std::optional<CheckpointJob> checkpoint_;
  Position durable_{1};
  Instant now_{1'700'000'000'000'000'000};
  std::vector<Lane> lanes_{std::size_t{kProducers} * kPartitions};
  std::vector<std::shared_ptr<Consumer>> consumers_;
  std::uint64_t connections_ = 0;
  std::map<std::uint32_t, PartitionReader> readers_;
  std::map<std::uint32_t, Generation> generations_;
  std::map<std::uint32_t, std::uint64_t> stored_;  // Confirmed, by partition.
};

void Consumer::told(const CoordinatorEffects::Effect& effect) {
  if (const auto* up = std::get_if<CoordinatorEffects::Activate>(&effect)) {
    if (up->member.connection != connection || !connected) return;
    world_.check_activation(*this, *up);
    seats[up->group.partition] = {up->generation, up->offset.value_or(GroupOffset{0}).value};
  } else if (const auto* down = std::get_if<CoordinatorEffects::StepDown>(&effect)) {
    if (down->member.connection != connection || !connected) return;
    owed[down->group.partition] = down->generation;
  }
}

TEST(StreamCrash, NoSeedBreaksAPromise) {
  for (std::uint64_t seed = 0; seed < seeds_wanted() && !testing::Test::HasFailure(); ++seed) {
    World world(seed);
    world.run();
  }
}

}  // namespace
}  // namespace baton
