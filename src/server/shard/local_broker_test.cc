#include "server/shard/local_broker.h"

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/shard/one_call.h"
#include "sim/fake_store.h"

namespace baton {
namespace {

/// A broker of two shards in its own folder, with stores in memory.
class LocalBrokerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("baton-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    BrokerOptions options;
    options.data = folder_.string();
    options.shards = 2;
    options.fsync = {.kind = FsyncMode::Kind::never, .interval = {}};
    options.journal.segment_bytes = std::uint64_t{16} << 20U;
    options.open_store = [this](const std::string& folder) {
      auto& media = media_[folder];
      if (media == nullptr) media = std::make_shared<FakeStoreMedia>(1);
      return Result<std::unique_ptr<CheckpointStore>>(std::make_unique<FakeStore>(media));
    };
    auto broker = LocalBroker::open(std::move(options));
    ASSERT_TRUE(broker.has_value()) << to_string(broker.error());
    broker_ = *std::move(broker);
  }
  void TearDown() override {
    broker_.reset();
    std::filesystem::remove_all(folder_);
  }

  /// The name of a queue in that shard.
  static std::string name_in(std::size_t shard) {
    std::string name = "q";
    while (shard_of_queue(name, 2) != shard) name += 'q';
    return name;
  }
  /// False if the broker refuses the call.
  template <class Wanted>
  bool execute(Wanted& command) {
    return execute_on<QueueCommand>(*broker_, command);
  }
  bool create(const std::string& queue) {
    CreateQueueCommand command{.queue = queue, .settings = {}, .error = {}, .description = {}};
    return execute(command) && !command.error.has_value();
  }
  bool send(const std::string& queue) {
    EnqueueCommand command{.queue = queue, .messages = {}, .outcomes = {}};
    command.messages.emplace_back().payload = "p";
    return execute(command) && !command.outcomes.at(0).error.has_value();
  }
  std::uint64_t ready(const std::string& queue) {
    ListQueuesCommand command;
    command.queue = queue;
    EXPECT_TRUE(execute(command));
    return command.descriptions.at(0).stats.ready;
  }

  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<FakeStoreMedia>> media_;
  std::unique_ptr<LocalBroker> broker_;
};

TEST_F(LocalBrokerTest, ClosesAShardAndOpensItAgainWhileTheOthersGoOn) {
  const std::string here = name_in(0);
  const std::string there = name_in(1);
  ASSERT_TRUE(create(here));
  ASSERT_TRUE(create(there));
  std::uint64_t boot = broker_->stats(0).boot;
  for (std::uint64_t sent = 1; sent <= 3; ++sent) {
    ASSERT_TRUE(send(here));
    broker_->close_shard(0);
    EXPECT_FALSE(send(here));
    EXPECT_TRUE(send(there));
    const Status opened = broker_->open_shard(0);
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    EXPECT_EQ(ready(here), sent);
    EXPECT_GT(broker_->stats(0).boot, boot);
    boot = broker_->stats(0).boot;
  }
  EXPECT_EQ(ready(there), 3U);
}

TEST_F(LocalBrokerTest, ClosingAndOpeningTwiceIsFine) {
  broker_->close_shard(1);
  broker_->close_shard(1);
  EXPECT_TRUE(broker_->checkpoint().has_value()) << "of the other one";
  EXPECT_EQ(broker_->inspect().size(), 2U);
  EXPECT_TRUE(broker_->open_shard(1).has_value());
  EXPECT_TRUE(broker_->open_shard(1).has_value());
  EXPECT_TRUE(create(name_in(1)));
}

}  // namespace
}  // namespace baton
