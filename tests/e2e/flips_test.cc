// Random bits of all kinds of files of a stopped broker are flipped. Each start either refuses,
// naming what is damaged, or serves only what was confirmed.
#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/private_disk.h"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kDamaged = 10;
constexpr int kTooNew = 11;
constexpr int kRecords = 300;
constexpr int kMessages = 40;
constexpr int kKeys = 20;

std::string text(std::string_view what, int number) {
  return fmt::format("{} {:04} {}", what, number, std::string(300, 'v'));
}

/// Flips one bit where the file holds data: not in the unused zeros of a journal.
std::string flip(const std::string& path, std::mt19937_64& random) {
  std::string bytes = read_file(path);
  const auto used = bytes.find_last_not_of('\0') + 1;
  if (used == 0) return {};
  const std::size_t at = random() % used;
  const auto bit = static_cast<unsigned>(random() % 8);
  bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1U << bit));
  write_file(path, bytes);
  return fmt::format("byte {} bit {} of {}", at, bit, path);
}

/// The kind of a file: each kind gets its share of the flips.
std::string kind_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".spare") || name == "RESERVE") return {};
  if (name == "LOCK" || name.starts_with("LOG")) return {};
  if (name.starts_with("OPTIONS") || name == "IDENTITY") return {};
  if (name.starts_with("MANIFEST")) return "MANIFEST";
  if (path.string().find("/checkpoint/") != std::string::npos && name.ends_with(".log")) return {};
  return path.has_extension() ? path.extension().string() : name;
}

class Flips : public testing::Test {
 protected:
  /// A broker that has written every kind of file, twice over, and stopped in order.
  void make_good() {
    broker_.use_data(good());
    ASSERT_TRUE(broker_.start()) << broker_.log();
    auto streams = client::Broker::open(broker_.connection());
    auto keys = client::Broker::open(broker_.connection());
    ASSERT_TRUE(
        streams->stream("orders").create(1, client::StreamSettings{.segment_bytes = 16384}));
    ASSERT_TRUE(keys->bucket("settings").create());
    broker_.create("jobs");
    for (int i = 0; i < kRecords; ++i) {
      const client::NewRecord record{.value = text("record", i)};
      ASSERT_TRUE(streams->stream("orders").append(std::span(&record, 1))->at(0).ok());
      if (i < kMessages) broker_.send("jobs", {text("message", i)});
      if (i < kKeys) {
        ASSERT_TRUE(keys->bucket("settings").put(fmt::format("key-{}", i), text("value", i)));
      }
      if (i == kKeys / 2) static_cast<void>(broker_.rows_after_checkpoint());
    }
    // Everything is old enough to be known as synced; the journal holds the second half.
    std::this_thread::sleep_for(milliseconds{1500});
    broker_.kill();
  }
  [[nodiscard]] std::string good() const { return broker_.folder() / "disk/good"; }
  [[nodiscard]] std::string bad() const { return broker_.folder() / "disk/bad"; }

  /// One flip, one start. Returns "refused", "read-only", "error" or "sound".
  std::string try_one(int run, std::mt19937_64& random, std::string& what);
  std::string look();
  bool read_records();

  BrokerProcess broker_{{"--shards", "1"}};
};

std::string Flips::try_one(int run, std::mt19937_64& random, std::string& what) {
  fs::remove_all(bad());
  fs::copy(good(), bad(), fs::copy_options::recursive);
  std::map<std::string, std::vector<std::string>> kinds;
  for (const auto& entry : fs::recursive_directory_iterator(bad())) {
    const std::string kind = entry.is_regular_file() ? kind_of(entry.path()) : std::string();
    if (!kind.empty()) kinds[kind].push_back(entry.path().string());
  }
  for (auto& [kind, files] : kinds) std::ranges::sort(files);
  // In turn, so that even a few runs cover every kind.
  const auto& files = std::next(kinds.begin(), run % std::ssize(kinds))->second;
  const std::string path = files[random() % files.size()];
  what = flip(path, random);
  if (what.empty()) return "empty";
  broker_.use_data(bad());
  const std::size_t logged = broker_.log().size();
  if (broker_.start(seconds{60})) {
    const std::string seen = look();
    broker_.kill();
    return seen;
  }
  const auto code = broker_.wait(seconds{1});
  const std::string said = broker_.log().substr(logged);
  EXPECT_TRUE(code == kDamaged || code == kTooNew) << code.value_or(-1) << ": " << what << "\n"
                                                   << said;
  const std::string folder = fs::path(path).parent_path().string();
  EXPECT_NE(said.find(folder), std::string::npos) << what << "\n" << said;
  return "refused";
}

/// Everything that can be read is right; what cannot be read is an error.
std::string Flips::look() {
  bool errors = false;
  const auto stream = client::Broker::open(broker_.connection())->stream("orders").describe();
  EXPECT_TRUE(stream.has_value());
  if (!stream.has_value()) return "nothing";
  const bool read_only = !stream->details.at(0).read_only.empty();
  errors = !read_records();
  auto keys = client::Broker::open(broker_.connection());
  for (int i = 0; i < kKeys; ++i) {
    const auto entry = keys->bucket("settings").get(fmt::format("key-{}", i));
    EXPECT_TRUE(entry.has_value() && entry->has_value()) << i;
    if (entry.has_value() && entry->has_value()) {
      EXPECT_EQ((*entry)->value, text("value", i));
    }
  }
  EXPECT_EQ(broker_.depth("jobs"), kMessages);
  const auto lease = open_stream(broker_, "jobs", {.in_flight_max = kMessages});
  const auto messages = take(*lease, kMessages, seconds{10});
  // A damaged table that was not read before ends the broker, with an error that says so.
  if (!broker_.is_running()) return "ended";
  std::set<std::string> payloads;
  for (const auto& message : messages) payloads.insert(message.payload);
  EXPECT_EQ(payloads.size(), kMessages);
  for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(payloads.contains(text("message", i))) << i;
  if (read_only) return "read-only";
  return errors ? "error" : "sound";
}

/// False if an error prevented it.
bool Flips::read_records() {
  auto client = client::Broker::open(broker_.connection());
  auto reader = client->stream("orders").read();
  int next = 0;
  while (true) {
    const auto read = reader.next();
    if (!read.has_value()) return false;
    if (!read->has_value()) break;
    for (const client::Record& record : **read) {
      EXPECT_EQ(record.offset.value, next);
      EXPECT_EQ(record.value, text("record", next));
      ++next;
    }
  }
  EXPECT_EQ(next, kRecords) << "records are gone without a word";
  return next == kRecords;
}

TEST_F(Flips, AStartRefusesOrServesWhatWasConfirmed) {
  const PrivateDisk disk(broker_.folder() / "disk", "size=1200m");
  if (!disk.why_not().empty()) fmt::print("on a real disk: cannot mount: {}\n", disk.why_not());
  make_good();
  const char* const wanted = std::getenv("BATON_FLIPS_SEED");
  const std::uint64_t seed =
      wanted != nullptr ? std::stoull(wanted) : (is_long_run() ? std::random_device{}() : 11);
  const int runs = is_long_run() ? 300 : 20;
  std::mt19937_64 random(seed);
  std::map<std::string, int> ends;
  for (int run = 0; run < runs; ++run) {
    std::string what;
    const std::string end = try_one(run, random, what);
    fmt::print("{:9} {}\n", end, what);
    ++ends[end];
    ASSERT_FALSE(HasFailure()) << "BATON_FLIPS_SEED=" << seed << " run " << run << ": " << what;
  }
  for (const auto& [end, count] : ends) fmt::print("{}: {}\n", end, count);
}

}  // namespace
}  // namespace baton::e2e
