// Data folders that cannot be used: refused with the file and the remedy, and nothing is destroyed.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/private_disk.h"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kDamaged = 10;
constexpr int kTooNew = 11;
constexpr int kUnusable = 12;

/// The files that hold data, with a hash of their content: not locks, nor the journal's spare
/// segments, nor what RocksDB rewrites whenever it is opened.
bool holds_something(const std::string& name) {
  for (const auto* prefix : {"LOCK", "LOG", "CURRENT", "MANIFEST", "OPTIONS"}) {
    if (name.starts_with(prefix)) return false;
  }
  for (const auto* suffix : {".spare", ".new", ".log"}) {
    if (name.ends_with(suffix)) return false;
  }
  return true;
}
std::map<std::string, std::size_t> snapshot(const std::string& folder) {
  std::map<std::string, std::size_t> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !holds_something(entry.path().filename().string())) continue;
    files[entry.path().string()] = std::hash<std::string>{}(read_file(entry.path()));
  }
  return files;
}

/// The only segment of the only shard.
std::string segment_of(const std::string& data) {
  std::vector<std::string> segments;
  for (const auto& entry : fs::directory_iterator(data + "/shard-0/journal")) {
    if (entry.path().extension() == ".journal") segments.push_back(entry.path().string());
  }
  EXPECT_EQ(segments.size(), 1U);
  return segments.empty() ? std::string() : segments[0];
}

void flip_byte(const std::string& file, std::string_view of_text) {
  std::string bytes = read_file(file);
  const auto at = bytes.find(of_text);
  ASSERT_NE(at, std::string::npos) << of_text << " is not in " << file;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
  write_file(file, bytes);
}

/// A broker that has run, and holds messages 0 to 9, each in a round of its own.
class Folder : public testing::Test {
 protected:
  void run_and_kill() {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    broker_.create("jobs");
    for (const std::string& payload : numbered("payload", 10)) broker_.send("jobs", {payload});
    broker_.kill();
  }
  void run_and_stop() {
    run_and_kill();
    ASSERT_TRUE(broker_.start()) << broker_.log();
    ASSERT_EQ(broker_.terminate(), 0);
  }

  /// Starts the broker, which must refuse with `code`, naming each of `words`, and change nothing.
  void expect_refusal(int code, const std::vector<std::string>& words) {
    const auto before = snapshot(broker_.data());
    const std::size_t logged = broker_.log().size();
    broker_.launch();
    EXPECT_EQ(broker_.wait(seconds{20}), code);
    const std::string said = broker_.log().substr(logged);
    fmt::print("{}", said);
    for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << word;
    EXPECT_EQ(snapshot(broker_.data()), before);
  }
  void expect_messages(std::size_t count) {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    EXPECT_EQ(broker_.depth("jobs"), count);
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

TEST_F(Folder, AFileInItsPlaceIsRefused) {
  write_file(broker_.data(), "precious");
  broker_.launch();
  EXPECT_EQ(broker_.wait(seconds{20}), kUnusable) << broker_.log();
  EXPECT_NE(broker_.log().find(broker_.data()), std::string::npos) << broker_.log();
  EXPECT_EQ(read_file(broker_.data()), "precious");
}

// Root may write anywhere except here.
TEST_F(Folder, AFolderThatCannotBeMadeIsRefused) {
  broker_.use_data("/proc/baton-data");
  broker_.launch();
  EXPECT_EQ(broker_.wait(seconds{20}), kUnusable) << broker_.log();
  EXPECT_NE(broker_.log().find("/proc/baton-data"), std::string::npos) << broker_.log();
}

TEST_F(Folder, ANewerFormatIsRefused) {
  run_and_stop();
  const std::string format = read_file(broker_.data() + "/FORMAT");
  write_file(broker_.data() + "/FORMAT", "baton-data 99\nshards 1\n");
  expect_refusal(kTooNew, {broker_.data() + "/FORMAT", "99", "newer"});
  write_file(broker_.data() + "/FORMAT", format);
  expect_messages(10);
}

TEST_F(Folder, AFormatThatCannotBeReadIsRefused) {
  run_and_stop();
  const std::string format = read_file(broker_.data() + "/FORMAT");
  for (const std::string& garbage : {std::string(), std::string("\xff\x00\x13 garbage", 11),
                                     std::string("baton-data 1\nshards 100000\n")}) {
    write_file(broker_.data() + "/FORMAT", garbage);
    expect_refusal(kDamaged, {broker_.data() + "/FORMAT"});
  }
  write_file(broker_.data() + "/FORMAT", format);
  expect_messages(10);
}

// It would no longer be known which shard has which queue.
TEST_F(Folder, AnotherNumberOfShardsIsRefused) {
  run_and_stop();
  broker_.flags() = {"--shards", "2"};
  const auto before = snapshot(broker_.data());
  broker_.launch();
  const auto code = broker_.wait(seconds{20});
  ASSERT_TRUE(code.has_value());
  EXPECT_NE(*code, 0);
  EXPECT_NE(broker_.log().find("shards"), std::string::npos) << broker_.log();
  EXPECT_EQ(snapshot(broker_.data()), before);
  broker_.flags() = {};
  expect_messages(10);
}

// Damage before the durable end is not a torn write: cutting there would lose confirmed messages.
TEST_F(Folder, AFlippedByteInTheMiddleOfTheJournalIsRefused) {
  run_and_kill();
  const std::string segment = segment_of(broker_.data());
  const std::string good = read_file(segment);
  flip_byte(segment, "payload-4");
  expect_refusal(kDamaged, {segment, "offset"});
  // Once more: the first refusal must not have repaired it seemingly.
  expect_refusal(kDamaged, {segment, "offset"});
  write_file(segment, good);
  expect_messages(10);
}

// The end of an interrupted write was never confirmed to anybody.
TEST_F(Folder, ATornTailIsCut) {
  run_and_kill();
  flip_byte(segment_of(broker_.data()), "payload-9");
  expect_messages(9);
  broker_.send("jobs", {"payload-10"});
  broker_.kill();
  expect_messages(10);
}

// The checkpoint says how far the journal went.
TEST_F(Folder, AMissingSegmentIsRefused) {
  run_and_stop();
  const std::string segment = segment_of(broker_.data());
  const std::string aside = broker_.folder() / "aside";
  fs::rename(segment, aside);
  expect_refusal(kDamaged, {broker_.data() + "/shard-0"});
  fs::rename(aside, segment);
  expect_messages(10);
}

TEST_F(Folder, ADamagedSegmentHeaderIsRefused) {
  run_and_kill();
  const std::string segment = segment_of(broker_.data());
  const std::string good = read_file(segment);
  write_file(segment, "BATONXXX" + good.substr(8));
  expect_refusal(kDamaged, {segment});
  write_file(segment, good);
  expect_messages(10);
}

TEST_F(Folder, AStrangeFileAmongTheSegmentsIsRefused) {
  run_and_kill();
  const std::string strange = broker_.data() + "/shard-0/journal/copy of 1.journal";
  write_file(strange, "?");
  expect_refusal(kDamaged, {strange});
  fs::remove(strange);
  expect_messages(10);
}

TEST_F(Folder, GarbageInTheCheckpointsCurrentIsRefused) {
  run_and_stop();
  const std::string current = broker_.data() + "/shard-0/checkpoint/CURRENT";
  const std::string good = read_file(current);
  ASSERT_FALSE(good.empty());
  write_file(current, "garbage");
  expect_refusal(kDamaged, {broker_.data() + "/shard-0/checkpoint"});
  write_file(current, good);
  expect_messages(10);
}

TEST_F(Folder, AMissingTableFileIsRefused) {
  run_and_stop();
  std::string table;
  for (const auto& entry : fs::directory_iterator(broker_.data() + "/shard-0/checkpoint")) {
    if (entry.path().extension() == ".sst") table = entry.path().string();
  }
  ASSERT_FALSE(table.empty());
  const std::string aside = broker_.folder() / "aside";
  fs::rename(table, aside);
  expect_refusal(kDamaged, {broker_.data() + "/shard-0/checkpoint"});
  fs::rename(aside, table);
  expect_messages(10);
}

TEST(FolderDisk, AReadOnlyDiskIsRefused) {
  BrokerProcess broker;
  const PrivateDisk disk(broker.data(), "size=1m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  disk.make_read_only();
  broker.launch();
  EXPECT_EQ(broker.wait(seconds{20}), kUnusable) << broker.log();
  EXPECT_NE(broker.log().find(broker.data()), std::string::npos) << broker.log();
  EXPECT_NE(broker.log().find("ead-only"), std::string::npos) << broker.log();
}

TEST(FolderDisk, ADiskTooSmallToStartOnIsRefused) {
  BrokerProcess broker;
  const PrivateDisk disk(broker.data(), "size=1m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  broker.launch();
  const auto code = broker.wait(seconds{20});
  // It may also start and refuse every message; but then it must serve.
  if (code.has_value()) {
    EXPECT_EQ(*code, kUnusable) << broker.log();
    EXPECT_NE(broker.log().find(broker.data()), std::string::npos) << broker.log();
  }
}

/// Half a mebibyte that no compression makes smaller.
std::string noise() {
  static std::mt19937_64 random(7);
  std::string bytes(512UL * 1024, '\0');
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

class FullDisk : public testing::Test {
 protected:
  /// Sends until a message is refused, and returns why; counts the confirmed ones.
  std::optional<Error> fill() {
    auto client = broker_.client();
    for (int i = 0; i < 500; ++i) {
      const std::vector<client::NewMessage> messages(4, {.payload = noise()});
      const auto results = client.queue("jobs").enqueue(messages);
      if (!results) return results.error();
      for (const auto& result : *results) {
        if (!result.ok()) return result.error;
        ++confirmed_;
      }
    }
    return std::nullopt;
  }

  BrokerProcess broker_{{"--shards", "1", "--checkpoint-interval", "1s"}};
  std::uint64_t confirmed_ = 0;
};

// New messages are refused, everything else goes on; and once there is room again, so do they.
TEST_F(FullDisk, EnqueuesAreRefusedLeasesAndAcksGoOnAndRoomMakesItWorkAgain) {
  PrivateDisk disk(broker_.data(), "size=1000m");
  if (!disk.why_not().empty()) GTEST_SKIP() << "NOT TESTED: cannot mount: " << disk.why_not();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs");

  disk.fill(450'000'000);
  // Several times: a checkpoint makes a little room again.
  std::optional<Error> refused;
  for (int i = 0; i < 5; ++i) {
    refused = fill();
    std::this_thread::sleep_for(milliseconds{300});
  }
  ASSERT_TRUE(refused.has_value()) << "the disk took " << confirmed_ << " messages";
  fmt::print("refused after {} messages: {}\n", confirmed_, to_string(*refused));
  EXPECT_EQ(refused->name(), "disk_full");
  EXPECT_NE(refused->text.find("full"), std::string::npos);
  // A smaller one may still fit.
  EXPECT_TRUE(eventually([&] {
    const int code = broker_.cli({"queue", "send", "jobs", "--size", "900KiB"}).exit_code;
    confirmed_ += code == 0 ? 1 : 0;
    return code == kUnusable;
  }));

  {
    const auto stream = open_stream(broker_, "jobs", {.in_flight_max = 10});
    for (int i = 0; i < 50; ++i) {
      const auto message = take(*stream, 1);
      ASSERT_EQ(message.size(), 1U);
      stream->ack(message[0].token);
    }
    EXPECT_TRUE(stream->close(seconds{20}).has_value());
  }
  EXPECT_TRUE(broker_.is_running()) << broker_.log();
  EXPECT_EQ(broker_.depth("jobs"), confirmed_ - 50);

  disk.empty();
  EXPECT_TRUE(eventually(
      [&] { return broker_.cli({"queue", "send", "jobs", "works again"}).exit_code == 0; },
      seconds{30}))
      << broker_.log();
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("jobs"), confirmed_ - 50 + 1);
}

}  // namespace
}  // namespace baton::e2e
