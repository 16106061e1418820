// A disk without room, a process without descriptors, files that others must not read.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/private_disk.h"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

/// A disk that the broker fills; the broker is then killed and started again.
class StartOnAFullDisk : public testing::Test {
 protected:
  std::uint64_t fill() {
    auto client = broker_.client();
    // Bytes that the checkpoint cannot compress.
    std::string payload(60'000, '\0');
    std::mt19937 random(1);
    std::ranges::generate(payload, [&] { return static_cast<char>(random()); });
    const std::vector<client::NewMessage> messages(10, {.payload = payload});
    std::uint64_t confirmed = 0;
    for (int i = 0; i < 2000; ++i) {
      const auto results = client.queue("jobs").enqueue(messages);
      if (!results.has_value()) return confirmed;
      for (const auto& result : *results) {
        if (!result.ok()) {
          EXPECT_EQ(result.error->name(), "disk_full");
          return confirmed;
        }
        ++confirmed;
      }
    }
    ADD_FAILURE() << "the disk took " << confirmed << " messages";
    return confirmed;
  }
  /// Leases and acks messages, and returns how many came.
  std::uint64_t drain(const std::string& queue, std::uint64_t count) {
    const auto stream = open_stream(broker_, queue, {.in_flight_max = 200});
    std::uint64_t taken = 0;
    while (taken < count) {
      const auto messages = take(*stream, std::min<std::uint64_t>(100, count - taken), seconds{30});
      if (messages.empty()) break;
      for (const auto& message : messages) stream->ack(message.token);
      taken += messages.size();
    }
    EXPECT_TRUE(stream->close(seconds{20}).has_value());
    return taken;
  }

  BrokerProcess broker_{{"--shards", "1", "--checkpoint-interval", "1s"}};
};

// Draining makes room, so it must be possible when there is none.
TEST_F(StartOnAFullDisk, EverythingIsDeliveredAndTheRoomComesBack) {
  PrivateDisk disk(broker_.data(), "size=420m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs");
  broker_.create("small");
  broker_.send("small", numbered("small", 20));
  // Somebody else has half of the disk, and will give it back. Without that the broker's own files
  // could fill it so far that no checkpoint fits any more.
  disk.fill(std::uintmax_t{200} << 20U);
  const std::uint64_t confirmed = fill();
  fmt::print("{} messages fit\n", confirmed);
  disk.fill(0);
  EXPECT_EQ(drain("jobs", 100), 100U);
  for (int life = 0; life < 3; ++life) {
    broker_.kill();
    disk.fill(0);  // What the dead broker's open files held is free now.
    ASSERT_TRUE(broker_.start()) << life << broker_.log();
  }
  EXPECT_EQ(drain("small", 20), 20U) << broker_.log();
  EXPECT_EQ(drain("jobs", confirmed - 100), confirmed - 100) << broker_.log();
  EXPECT_EQ(broker_.depth("jobs"), 0U);
  // Other files and messages are gone: there is room for as many messages again.
  disk.empty();
  EXPECT_TRUE(eventually(
      [&] { return broker_.cli({"queue", "send", "jobs", "works again"}).exit_code == 0; },
      seconds{30}))
      << broker_.log();
}

// The free space that the broker keeps depends on the disk's size: a small disk that is drained
// takes messages again, and many times its capacity can pass through.
TEST(SmallDisk, TakesMessagesAgainOnceItIsDrained) {
  BrokerProcess broker{{"--shards", "1"}};
  const PrivateDisk disk(broker.data(), "size=200m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("jobs");
  auto client = broker.client();
  const auto stream = open_stream(broker, "jobs", {.in_flight_max = 200});
  const std::vector<client::NewMessage> messages(100, {.payload = std::string(60'000, 'x')});
  for (int round = 0; round < 60; ++round) {
    // Only a checkpoint in progress may be waited for.
    ASSERT_TRUE(eventually([&] {
      const auto results = client.queue("jobs").enqueue(messages);
      return results.has_value() && results->at(0).ok() && results->back().ok();
    })) << round
        << broker.log();
    const auto taken = take(*stream, messages.size(), seconds{30});
    ASSERT_EQ(taken.size(), messages.size()) << round;
    for (const auto& message : taken) stream->ack(message.token);
  }
  EXPECT_TRUE(stream->close(seconds{20}).has_value());
}

/// Sets how many files the process may have open; returns the former limit.
rlim_t limit_files(pid_t pid, rlim_t files) {
  rlimit before{};
  EXPECT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit wanted{.rlim_cur = files, .rlim_max = before.rlim_max};
  EXPECT_EQ(::prlimit(pid, RLIMIT_NOFILE, &wanted, nullptr), 0);
  return before.rlim_cur;
}

std::size_t files_of(pid_t pid) {
  const fs::path folder = fmt::format("/proc/{}/fd", pid);
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

// Other clients' connections can take every descriptor: the broker refuses, says why, and goes on.
TEST(OpenFiles, WithoutDescriptorsAppendsAreRefusedAndTheBrokerLives) {
  BrokerProcess broker{{"--shards", "1"}};
  ASSERT_TRUE(broker.start()) << broker.log();
  auto streams = client::Broker::open(broker.connection());
  auto queues = broker.client();
  ASSERT_TRUE(streams->stream("orders").create(1, client::StreamSettings{.segment_bytes = 65536}));
  broker.create("jobs");
  const client::NewRecord record{.value = std::string(20'000, 'x')};
  const client::NewMessage message{.payload = std::string(500'000, 'm')};
  const auto append = [&] { return streams->stream("orders").append(std::span(&record, 1)); };
  ASSERT_TRUE(append()->at(0).ok());
  ASSERT_TRUE(queues.queue("jobs").enqueue(std::span(&message, 1))->at(0).ok());

  const rlim_t before = limit_files(broker.pid(), files_of(broker.pid()));
  std::uint64_t confirmed = 1;
  std::string said;
  for (int i = 0; i < 30; ++i) {
    const auto results = append();
    ASSERT_TRUE(results.has_value()) << to_string(results.error());
    confirmed += results->at(0).ok() ? 1 : 0;
    if (!results->at(0).ok()) said = to_string(*results->at(0).error);
  }
  EXPECT_NE(said.find("too many open files"), std::string::npos) << said;
  EXPECT_EQ(said.find("disk_full"), std::string::npos);
  // The journal goes on into its next segments, and then refuses in the same way.
  std::uint64_t messages = 1;
  std::string refusal;
  for (int i = 0; i < 500 && refusal.empty(); ++i) {
    const auto results = queues.queue("jobs").enqueue(std::span(&message, 1));
    ASSERT_TRUE(results.has_value()) << to_string(results.error());
    if (results->at(0).ok()) ++messages;
    if (!results->at(0).ok()) refusal = to_string(*results->at(0).error);
  }
  EXPECT_NE(refusal.find("too many open files"), std::string::npos) << refusal;
  EXPECT_TRUE(broker.is_running()) << broker.log();
  EXPECT_EQ(broker.log().find("event=journal_full"), std::string::npos) << broker.log();
  EXPECT_NE(broker.log().find("event=too_many_open_files"), std::string::npos);

  limit_files(broker.pid(), before);
  EXPECT_TRUE(eventually([&] { return append()->at(0).ok(); }));
  ++confirmed;
  EXPECT_TRUE(
      eventually([&] { return queues.queue("jobs").enqueue(std::span(&message, 1))->at(0).ok(); }));
  EXPECT_EQ(broker.depth("jobs"), messages + 1);
  broker.kill();
  ASSERT_TRUE(broker.start()) << broker.log();
  const auto stream = client::Broker::open(broker.connection())->stream("orders").describe();
  ASSERT_TRUE(stream.has_value()) << to_string(stream.error());
  EXPECT_EQ(stream->details.at(0).next_offset.value, confirmed);
  EXPECT_EQ(stream->details.at(0).read_only, "");
  EXPECT_EQ(broker.depth("jobs"), messages + 1);
}

/// Files and folders of the data folder that other users than the owner can access.
std::vector<std::string> open_to_others(const std::string& data) {
  std::vector<std::string> open;
  const auto look = [&](const fs::path& path) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return;
    if ((status.st_mode & 077U) != 0)
      open.push_back(fmt::format("{} {:o}", path.string(), status.st_mode & 07777U));
  };
  look(data);
  for (const auto& entry : fs::recursive_directory_iterator(data)) look(entry.path());
  return open;
}

class OwnerOnly : public testing::Test {
 protected:
  /// Writes every kind of file.
  void work() {
    auto streams = client::Broker::open(broker_.connection());
    ASSERT_TRUE(
        streams->stream("orders").create(1, client::StreamSettings{.segment_bytes = 65536}));
    const client::NewRecord record{.value = std::string(20'000, 'x')};
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(streams->stream("orders").append(std::span(&record, 1))->at(0).ok());
    }
    broker_.create("jobs");
    broker_.send("jobs", {"a secret payload"});
    static_cast<void>(broker_.rows_after_checkpoint());
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

TEST_F(OwnerOnly, NobodyElseCanReadTheDataFolderWhateverTheUmask) {
  const mode_t before = ::umask(0);
  const bool started = broker_.start();
  ::umask(before);
  ASSERT_TRUE(started) << broker_.log();
  work();
  EXPECT_EQ(open_to_others(broker_.data()), std::vector<std::string>{});
  if (::geteuid() != 0) GTEST_SKIP() << "NOT TESTED: another user; this one is not root";
  fs::permissions(broker_.folder().path(), fs::perms::others_all, fs::perm_options::add);
  const auto found =
      run_command({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "/usr/bin/grep", "-ra", "secret payload", broker_.data()});
  EXPECT_NE(found.exit_code, 0);
  EXPECT_EQ(found.out, "");
}

TEST_F(OwnerOnly, AFolderThatWasOpenIsTightenedAndThatIsLogged) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  work();
  ASSERT_EQ(broker_.terminate(), 0);
  EXPECT_EQ(broker_.log().find("event=permissions_tightened"), std::string::npos);
  for (const auto& entry : fs::recursive_directory_iterator(broker_.data())) {
    fs::permissions(entry.path(), fs::perms::group_read | fs::perms::others_read,
                    fs::perm_options::add);
  }
  fs::permissions(broker_.data(), fs::perms(0755));
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(open_to_others(broker_.data()), std::vector<std::string>{});
  EXPECT_NE(broker_.log().find("event=permissions_tightened"), std::string::npos);
  EXPECT_EQ(broker_.depth("jobs"), 1U);
}

}  // namespace
}  // namespace baton::e2e
