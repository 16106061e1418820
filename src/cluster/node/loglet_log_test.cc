#include "cluster/node/loglet_log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster/node/live_log.h"
#include "server/shard/local_broker.h"
#include "server/shard/one_call.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"

namespace baton::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Timeouts that a test can wait for.
LogletLogOptions quick() {
  LogletLogOptions options;
  options.pump.appender.answer_timeout = milliseconds{50};
  options.pump.patience = {.read_timeout = milliseconds{50},
                           .silence = milliseconds{100},
                           .pause_min = milliseconds{1},
                           .pause_max = milliseconds{5}};
  options.confirm_patience = milliseconds{100};
  options.read_patience = seconds{2};
  return options;
}

/// A broker on logs that outlive its machine.
class NodeTest : public testing::Test {
 protected:
  static constexpr std::size_t kShards = 2;

  /// One machine: a folder, and what its stores keep.
  struct Machine {
    explicit Machine(const std::string& name)
        : folder(std::filesystem::path(testing::TempDir()) /
                 fmt::format("baton-{}-{}", ::getpid(), name)) {
      std::filesystem::remove_all(folder);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    ~Machine() {
      broker.reset();
      std::filesystem::remove_all(folder);
    }
    std::filesystem::path folder;
    std::map<std::string, std::shared_ptr<FakeStoreMedia>> media;
    std::atomic<int> deposed = 0;
    std::unique_ptr<LocalBroker> broker;
  };

  Status start(Machine& machine) {
    BrokerOptions options;
    options.data = machine.folder.string();
    options.shards = kShards;
    options.fsync = {.kind = FsyncMode::Kind::always, .interval = {}};
    options.cluster = "c1";
    options.take_over_patience = milliseconds{500};
    options.open_store = [&machine](const std::string& folder) {
      auto& media = machine.media[folder];
      if (media == nullptr) media = std::make_shared<FakeStoreMedia>(1);
      return Result<std::unique_ptr<CheckpointStore>>(std::make_unique<FakeStore>(media));
    };
    options.open_log = [this, &machine](Disk& disk,
                                        std::size_t shard) -> Result<std::unique_ptr<ShardLog>> {
      const std::string data = machine.folder.string();
      BATON_TRY(PartitionFolders partitions,
                PartitionFolders::open(disk, DataFolder::streams_of(data, shard)));
      LogletLogOptions log = quick();
      log.mark_file = fmt::format("{}/shard-{}/LOG", data, shard);
      return std::unique_ptr<ShardLog>(
          std::make_unique<LogletLog>(log, logs_[shard].client(), disk, std::move(partitions)));
    };
    options.deposed = [&machine](std::size_t) { ++machine.deposed; };
    auto broker = LocalBroker::open(std::move(options));
    if (!broker.has_value()) return std::move(broker).error();
    machine.broker = *std::move(broker);
    return {};
  }
  static bool create(Machine& machine, const std::string& queue) {
    CreateQueueCommand command{.queue = queue, .settings = {}, .error = {}, .description = {}};
    return execute_on<QueueCommand>(*machine.broker, command) && !command.error.has_value();
  }
  static bool send(Machine& machine, const std::string& queue, std::size_t bytes = 10) {
    EnqueueCommand command{.queue = queue, .messages = {}, .outcomes = {}};
    command.messages.emplace_back().payload = std::string(bytes, 'p');
    return execute_on<QueueCommand>(*machine.broker, command) &&
           !command.outcomes.at(0).error.has_value();
  }
  static std::uint64_t ready(Machine& machine, const std::string& queue) {
    ListQueuesCommand command;
    command.queue = queue;
    EXPECT_TRUE(execute_on<QueueCommand>(*machine.broker, command));
    return command.descriptions.empty() ? 0 : command.descriptions.at(0).stats.ready;
  }
  void set_faults(const loglet::MemoryFaults& faults) {
    for (LiveLog& log : logs_) log.with([&](auto& memory) { memory.set_faults(faults); });
  }
  void set_down(bool down) {
    for (LiveLog& log : logs_) log.with([&](auto& memory) { memory.set_down(down); });
  }

  std::array<LiveLog, kShards> logs_;
};

TEST_F(NodeTest, WhatWasConfirmedSurvivesTheLossOfTheMachine) {
  {
    Machine lost("lost");
    ASSERT_TRUE(start(lost).has_value());
    for (const std::string queue : {"a", "b", "c", "d"}) {
      ASSERT_TRUE(create(lost, queue));
      for (int i = 0; i < 25; ++i) ASSERT_TRUE(send(lost, queue, 2000));
    }
  }
  Machine other("other");
  const Status started = start(other);
  ASSERT_TRUE(started.has_value()) << to_string(started.error());
  for (const std::string queue : {"a", "b", "c", "d"}) EXPECT_EQ(ready(other, queue), 25U);
}

TEST_F(NodeTest, ConfirmsAndRecoversWhileAnswersGetLost) {
  set_faults({.request_lost = 5,
              .request_twice = 5,
              .answer_lost = 5,
              .reordered = 20,
              .read_short = 10,
              .unable = 3});
  int confirmed = 0;
  {
    Machine lost("lost");
    ASSERT_TRUE(start(lost).has_value());
    ASSERT_TRUE(create(lost, "q"));
    for (int i = 0; i < 40; ++i) confirmed += send(lost, "q") ? 1 : 0;
  }
  Machine other("other");
  const Status started = start(other);
  ASSERT_TRUE(started.has_value()) << to_string(started.error());
  EXPECT_GE(confirmed, 20);
  EXPECT_GE(ready(other, "q"), static_cast<std::uint64_t>(confirmed));
}

// Otherwise every start would read the whole log.
TEST_F(NodeTest, RecoveryBeginsWhereTheCheckpointEnded) {
  Machine machine("machine");
  ASSERT_TRUE(start(machine).has_value());
  ASSERT_TRUE(create(machine, "q"));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(send(machine, "q", 100'000));
  ASSERT_TRUE(machine.broker->checkpoint().has_value());
  machine.broker.reset();
  const std::size_t shard = shard_of_queue("q", kShards);
  const auto disk = make_real_disk();
  const auto mark =
      read_log_mark(*disk, fmt::format("{}/shard-{}/LOG", machine.folder.string(), shard));
  ASSERT_TRUE(mark.has_value() && mark->has_value());
  EXPECT_GT((*mark)->place.sequence, 20U);
  // What lies before the mark is not needed.
  const auto client = logs_[shard].client();
  client->trim(1, (*mark)->place.sequence);
  while (client->take_answers().empty()) std::this_thread::yield();
  const Status started = start(machine);
  ASSERT_TRUE(started.has_value()) << to_string(started.error());
  EXPECT_EQ(ready(machine, "q"), 30U);
}

TEST_F(NodeTest, ALogThatLostItsEndIsNoticed) {
  Machine machine("machine");
  ASSERT_TRUE(start(machine).has_value());
  ASSERT_TRUE(create(machine, "q"));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(send(machine, "q", 100'000));
  ASSERT_TRUE(machine.broker->checkpoint().has_value());
  machine.broker.reset();
  for (LiveLog& log : logs_) log.with([](auto& memory) { memory.lose_from(3); });
  const Status started = start(machine);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, Errc::journal_corrupt) << to_string(started.error());
}

// A node that was frozen, and whose place another one took, confirms nothing more.
TEST_F(NodeTest, AFormerOwnerIsDeposed) {
  Machine old("old");
  ASSERT_TRUE(start(old).has_value());
  ASSERT_TRUE(create(old, "q"));
  ASSERT_TRUE(send(old, "q"));
  Machine young("young");
  const Status started = start(young);
  ASSERT_TRUE(started.has_value()) << to_string(started.error());
  EXPECT_EQ(ready(young, "q"), 1U);
  auto sent = std::async(std::launch::async, [&] { return send(old, "q"); });
  while (old.deposed == 0) std::this_thread::yield();
  EXPECT_TRUE(old.broker->stop().has_value());
  EXPECT_FALSE(sent.get());
  EXPECT_EQ(old.deposed, 1);
  EXPECT_TRUE(send(young, "q"));
  EXPECT_EQ(ready(young, "q"), 2U);
  EXPECT_EQ(young.deposed, 0);
}

TEST_F(NodeTest, NothingIsConfirmedWhileTheLogIsAway) {
  Machine machine("machine");
  ASSERT_TRUE(start(machine).has_value());
  ASSERT_TRUE(create(machine, "q"));
  set_down(true);
  auto waiting = std::async(std::launch::async, [&] { return send(machine, "q"); });
  // After its patience the node refuses calls that it can refuse.
  const auto refused = [&] {
    ListQueuesCommand list;
    list.queue = "q";
    std::unique_ptr<Call> call =
        std::make_unique<PromisedCall>(QueueCommand(list), std::promise<Command>());
    return !machine.broker->submit(call, Broker::Admission::bounded);
  };
  while (!refused()) std::this_thread::sleep_for(milliseconds{10});
  EXPECT_EQ(waiting.wait_for(milliseconds{0}), std::future_status::timeout);
  set_down(false);
  EXPECT_TRUE(waiting.get());
  while (refused()) std::this_thread::sleep_for(milliseconds{10});
}

TEST_F(NodeTest, AFolderBelongsToItsCluster) {
  Machine machine("machine");
  ASSERT_TRUE(start(machine).has_value());
  machine.broker.reset();
  const auto alone = DataFolder::open(machine.folder.string(), kShards);
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().text.find("node of a cluster"), std::string::npos);
  const auto elsewhere = DataFolder::open(machine.folder.string(), kShards, "c2");
  ASSERT_FALSE(elsewhere.has_value());
  EXPECT_NE(elsewhere.error().text.find("another cluster"), std::string::npos);
}

/// A log alone.
class LogletLogTest : public testing::Test {
 protected:
  std::unique_ptr<LogletLog> open(LogletLogOptions options = quick()) {
    options.mark_file = "folder/LOG";
    EXPECT_TRUE(disk_.make_folder("folder").has_value());
    auto log = std::make_unique<LogletLog>(options, live_.client(), disk_,
                                           *PartitionFolders::open(disk_, "folder"));
    const Status read = log->read(Position{1}, [](const Round&) { return Status{}; });
    EXPECT_TRUE(read.has_value()) << to_string(read.error());
    return log;
  }
  static Status append(LogletLog& log, std::uint64_t boot, const std::string& facts = "facts") {
    return log.append({.expected = log.next(), .epoch = boot, .now = {}, .facts = facts});
  }

  FakeDisk disk_{1};
  LiveLog live_;
};

TEST_F(LogletLogTest, AdditionsWaitWhileMuchIsUnconfirmed) {
  const auto log = open();
  EXPECT_EQ(log->room().additions, log->round_bytes_max());
  ASSERT_TRUE(append(*log, 1).has_value());
  ASSERT_TRUE(log->sync().has_value());
  live_.with([](auto& memory) { memory.set_down(true); });
  ASSERT_TRUE(append(*log, 1, std::string(9 << 20, 'x')).has_value());
  EXPECT_LT(log->room().additions, 4U << 20U);
  EXPECT_GE(log->room().everything, 4U << 20U);
  ASSERT_TRUE(append(*log, 1, std::string(9 << 20, 'x')).has_value());
  EXPECT_EQ(log->room().everything, 0U);
  const auto unknown = log->sync();
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Errc::unavailable);
  live_.with([](auto& memory) { memory.set_down(false); });
  auto settled = log->settle();
  while (!settled.has_value()) settled = log->settle();
  EXPECT_EQ(*settled, log->next());
  EXPECT_EQ(log->room().additions, log->round_bytes_max());
  EXPECT_GT(log->bytes_since(Position{1}), 18U << 20U);
}

TEST_F(LogletLogTest, AFullLogRefusesAdditionsOnly) {
  LogletLogOptions options = quick();
  options.log_bytes_max = 100'000;
  const auto log = open(options);
  ASSERT_TRUE(append(*log, 1).has_value());
  EXPECT_TRUE(log->prepare().has_value());
  ASSERT_TRUE(append(*log, 1, std::string(200'000, 'x')).has_value());
  ASSERT_TRUE(log->sync().has_value());
  EXPECT_EQ(log->room().additions, 0U);
  EXPECT_GT(log->room().everything, 0U);
  const Status prepared = log->prepare();
  ASSERT_FALSE(prepared.has_value());
  EXPECT_EQ(prepared.error().code, Errc::journal_full);
}

TEST_F(LogletLogTest, AnEngineWithoutRoomIsAFullLog) {
  const auto log = open();
  live_.with([](auto& memory) { memory.set_faults({.full = true}); });
  ASSERT_TRUE(append(*log, 1).has_value());
  EXPECT_FALSE(log->sync().has_value());
  EXPECT_EQ(log->room().additions, 0U);
  EXPECT_FALSE(log->prepare().has_value());
  live_.with([](auto& memory) { memory.set_faults({}); });
  auto settled = log->settle();
  while (!settled.has_value()) settled = log->settle();
  EXPECT_TRUE(log->prepare().has_value());
}

TEST_F(LogletLogTest, AnotherOwnersBootTakesThePosition) {
  const auto old = open();
  ASSERT_TRUE(append(*old, 1).has_value());
  ASSERT_TRUE(old->sync().has_value());
  const auto young = open();
  ASSERT_EQ(young->next(), Position{2});
  // Not greater than the boot in the log.
  EXPECT_EQ(append(*young, 1).error().code, Errc::position_taken);
  ASSERT_TRUE(append(*young, 2).has_value());
  ASSERT_TRUE(young->sync().has_value());
  ASSERT_TRUE(append(*old, 1).has_value());
  EXPECT_EQ(old->sync().error().code, Errc::position_taken);
  EXPECT_EQ(append(*old, 1).error().code, Errc::position_taken);
}

TEST(LogMarkTest, ComesBackOrSaysThatItIsDamaged) {
  FakeDisk disk(1);
  ASSERT_TRUE(disk.make_folder("f").has_value());
  EXPECT_FALSE(read_log_mark(disk, "f/LOG")->has_value());
  const LogMark mark{.place = {.sequence = 7, .state = {.boot = 2, .position = 5, .chain = 99}},
                     .bytes = 1234};
  ASSERT_TRUE(write_log_mark(disk, "f/LOG", mark).has_value());
  EXPECT_EQ(read_log_mark(disk, "f/LOG").value(), mark);
  ASSERT_TRUE((*disk.open("f/LOG"))->write_at(20, "x").has_value());
  EXPECT_EQ(read_log_mark(disk, "f/LOG").error().code, Errc::store_corrupt);
}

}  // namespace
}  // namespace baton::cluster
