// A data folder that an older binary wrote, and in which it was killed, is opened by this one:
// everything is there. tests/compat/make_data_folder.py made the folders, and says what they hold.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kPhases{"first", "second"};

class OldFolder : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string archive = fmt::format("{}/compat/{}.tar.gz", paths::kTests, GetParam());
    const auto done =
        run_command({"/usr/bin/tar", "-C", broker_.folder().path().string(), "-xzf", archive});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  [[nodiscard]] std::vector<std::string> drain(const std::string& queue, std::size_t count) {
    const auto stream = open_stream(broker_, queue, {.in_flight_max = 100});
    const auto messages = take(*stream, count);
    for (const auto& message : messages) stream->ack(message.token);
    EXPECT_TRUE(stream->close(seconds{20}).has_value());
    std::vector<std::string> payloads = payloads_of(messages);
    std::ranges::sort(payloads);
    return payloads;
  }
  [[nodiscard]] std::vector<std::string> values(std::uint32_t partition) const {
    std::vector<std::string> all;
    auto client = client::Broker::open(broker_.connection());
    auto reader = client->stream("orders").read({.partition = PartitionNumber{partition}});
    while (true) {
      auto read = reader.next();
      EXPECT_TRUE(read.has_value()) << to_string(read.error());
      if (!read.has_value() || !read->has_value()) return all;
      for (client::Record& record : **read) all.push_back(record.value.value_or("none"));
    }
  }

  void expect_queues();
  void expect_streams();
  void expect_keys();
  /// What data_folder_v1_full has besides.
  void expect_everything() const;
  void expect_full_queue(const std::string& name, const std::string& phase) const;
  void expect_full_stream(const std::string& name) const;
  void expect_full_bucket(const std::string& name) const;
  [[nodiscard]] static bool is_full() { return std::string_view(GetParam()).ends_with("_full"); }
  /// What the broker says of all that has settings or rows, without what changes by itself.
  [[nodiscard]] std::string answers() const;

  BrokerProcess broker_;
};

void OldFolder::expect_queues() {
  std::vector<std::string> ready;
  std::vector<std::string> graves;
  for (const std::string& phase : kPhases) {
    ready.insert(ready.end(), {phase + " plain", phase + " once"});
    for (const char* key : {"blue", "red"}) {
      for (int i = 0; i < 10; ++i) ready.push_back(fmt::format("{} {} {}", phase, key, i));
    }
    for (int i = 0; i < 4; ++i) graves.push_back(fmt::format("{} of sick-{}", phase, i));
  }
  std::ranges::sort(ready);
  std::ranges::sort(graves);
  EXPECT_EQ(broker_.depth("ready"), ready.size());
  EXPECT_EQ(drain("ready", ready.size()), ready);
  EXPECT_EQ(broker_.depth("later"), 2U);
  EXPECT_EQ(drain("failing.dlq", 2), (std::vector<std::string>{"first failed", "second failed"}));
  EXPECT_EQ(broker_.depth("held"), 3U);
  // The target was full: messages that could not go there before go now.
  EXPECT_EQ(broker_.cli({"queue", "update", "graves", "--messages-max", "0"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return broker_.depth("graves") == graves.size(); }));
  EXPECT_EQ(drain("graves", graves.size()), graves);
  EXPECT_NE(broker_.cli({"queue", "describe", "gone"}).exit_code, 0);
  const auto settings = broker_.cli({"queue", "describe", "ready", "--json"});
  EXPECT_NE(settings.out.find("\"blue\":3"), std::string::npos) << settings.out;
}

void OldFolder::expect_streams() {
  std::vector<std::string> expected;
  for (const std::string& phase : kPhases) {
    for (const char* codec : {"none", "lz4", "zstd", "gzip", "snappy"}) {
      for (int i = 0; i < 60; ++i) {
        expected.push_back(fmt::format("{} {} {} {}", phase, codec, i, std::string(300, 'x')));
      }
    }
  }
  for (std::uint32_t partition = 0; partition < 2; ++partition) {
    EXPECT_EQ(values(partition), expected);
  }
  EXPECT_TRUE(values(2).empty());
  auto client = client::Broker::open(broker_.connection());
  const auto stream = client->stream("orders").describe();
  ASSERT_TRUE(stream.has_value());
  ASSERT_EQ(stream->details.size(), 3U);
  EXPECT_GT(stream->details[0].segments, 1U);
  for (const auto& partition : stream->details) EXPECT_EQ(partition.read_only, "");
  const auto offset = [&](std::size_t partition, std::string_view group) {
    for (const auto& each : stream->details[partition].groups) {
      if (each.group == group) return each.offset.value_or(kNoOffset);
    }
    return kNoOffset;
  };
  EXPECT_EQ(offset(0, "billing"), Offset{140});
  EXPECT_EQ(offset(1, "audit"), Offset{100});
}

void OldFolder::expect_keys() {
  auto keys = client::Broker::open(broker_.connection());
  std::set<std::string> expected{"shared"};
  for (const std::string& phase : kPhases) {
    for (int i = 0; i < 4; ++i) expected.insert(fmt::format("{}.{}", phase, i));
  }
  const auto shared = keys->bucket("settings").get("shared");
  ASSERT_TRUE(shared.has_value() && shared->has_value());
  EXPECT_EQ((*shared)->value, "second");
  EXPECT_EQ((*shared)->version, 2U);
  const auto listed = broker_.cli({"kv", "list", "settings"});
  for (const std::string& key : expected) {
    EXPECT_NE(listed.out.find(key), std::string::npos) << key << " in " << listed.out;
  }
  EXPECT_EQ(listed.out.find("first.4"), std::string::npos);
  EXPECT_NE(broker_.cli({"kv", "bucket", "describe", "gone"}).exit_code, 0);
}

void OldFolder::expect_full_queue(const std::string& name, const std::string& phase) const {
  const auto queue = broker_.client().queue(name).describe();
  ASSERT_TRUE(queue.has_value()) << name;
  const client::QueueSettings& settings = queue->settings;
  EXPECT_EQ(settings.visibility_timeout, seconds{4});
  EXPECT_EQ(settings.attempts_max, 5U);
  EXPECT_EQ(settings.dead_letter_queue, "elsewhere");
  EXPECT_EQ(settings.retry_delay, milliseconds{6});
  EXPECT_EQ(settings.retry_delay_max, seconds{7});
  EXPECT_EQ(settings.release_on_disconnect, false);
  EXPECT_EQ(settings.payload_bytes_max, 80'000U);
  EXPECT_EQ(settings.messages_max, 9'000U);
  EXPECT_EQ(settings.bytes_max, 10'000'000U);
  EXPECT_EQ(settings.retention, std::chrono::hours{24 * 3650});
  EXPECT_EQ(settings.dedup_window, std::chrono::hours{24 * 7});
  EXPECT_EQ(settings.dedup_ids_max, 13'000U);
  EXPECT_EQ(settings.fairness_cost, client::FairnessCost::byte);
  EXPECT_EQ(settings.weights, (std::map<std::string, std::uint32_t>{{"a", 14}, {"b", 15}}));
  EXPECT_EQ(settings.throttles, (std::map<std::string, client::Throttle>{
                                    {"api", client::Throttle{.rate = 16.5, .burst = 17}}}));
  EXPECT_EQ(queue->stats.ready, phase.empty() ? 0U : 2U) << name;
}

void OldFolder::expect_full_stream(const std::string& name) const {
  auto client = client::Broker::open(broker_.connection());
  const auto stream = client->stream(name).describe();
  ASSERT_TRUE(stream.has_value()) << name;
  EXPECT_EQ(stream->settings.retention, std::chrono::hours{24 * 3650});
  EXPECT_EQ(stream->settings.retention_bytes, 100'000'000U);
  EXPECT_EQ(stream->settings.segment_bytes, 16U * 1024U);
  EXPECT_EQ(stream->settings.fsync, "interval:200");
  EXPECT_EQ(stream->settings.batch_bytes_max, 100U * 1024U);
  ASSERT_EQ(stream->details.size(), 2U);
  EXPECT_EQ(stream->details[1].next_offset, Offset{1});
  ASSERT_EQ(stream->details[1].groups.size(), 2U);
  for (const auto& group : stream->details[1].groups)
    EXPECT_EQ(group.offset, Offset{1}) << group.group;
  const auto strict = broker_.cli({"group", "describe", name, "strict", "--json"});
  EXPECT_NE(strict.out.find("strict"), std::string::npos) << strict.out << strict.err;
}

void OldFolder::expect_full_bucket(const std::string& name) const {
  auto keys = client::Broker::open(broker_.connection());
  const auto bucket = keys->bucket(name).describe();
  ASSERT_TRUE(bucket.has_value()) << name;
  EXPECT_EQ(bucket->settings.value_bytes_max, 1'000U);
  EXPECT_EQ(bucket->settings.keys_max, 50U);
  EXPECT_EQ(bucket->settings.history_changes_max, 300U);
  EXPECT_EQ(bucket->settings.history_bytes_max, 70'000U);
  const auto brief = keys->bucket(name).get("brief");
  ASSERT_TRUE(brief.has_value() && brief->has_value());
  EXPECT_EQ((*brief)->value, "soon gone");
  EXPECT_TRUE((*brief)->expires_at.has_value());
  const auto lasting = keys->bucket(name).get("lasting");
  ASSERT_TRUE(lasting.has_value() && lasting->has_value());
  EXPECT_FALSE((*lasting)->expires_at.has_value());
}

void OldFolder::expect_everything() const {
  if (!is_full()) return;
  for (const std::string& phase : kPhases) {
    expect_full_queue("full-" + phase, phase);
    expect_full_queue("full-" + phase + "-updated", "");
    expect_full_stream("full-" + phase);
    expect_full_bucket("full-" + phase);
  }
}

std::string OldFolder::answers() const {
  std::string all;
  const auto queues = broker_.client().queues();
  EXPECT_TRUE(queues.has_value());
  for (const client::QueueInfo& queue : *queues) {
    const auto described = broker_.cli({"queue", "describe", queue.name, "--json"});
    all += nlohmann::json::parse(described.out).at("settings").dump();
    // Leases end by themselves, and their messages wait for a while.
    all += fmt::format(" {} {} {} {}\n", queue.id,
                       queue.stats.ready + queue.stats.leased + queue.stats.delayed,
                       queue.stats.bytes, queue.stats.outgoing);
    if (queue.name == "held") continue;
    all += broker_.cli({"queue", "peek", queue.name, "--max", "100", "--json"}).out;
  }
  auto client = client::Broker::open(broker_.connection());
  const auto streams = client->streams();
  EXPECT_TRUE(streams.has_value());
  for (const client::StreamInfo& stream : *streams) {
    all += broker_.cli({"stream", "describe", stream.name, "--json"}).out;
  }
  for (const char* bucket : {"settings", "full-first", "full-second"}) {
    all += broker_.cli({"kv", "list", bucket, "--json"}).out;
  }
  return all;
}

TEST_P(OldFolder, EverythingIsThere) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  expect_streams();
  expect_keys();
  expect_everything();
  expect_queues();
  // From here on it is a folder like any other.
  ASSERT_EQ(broker_.terminate(), 0);
  EXPECT_NE(read_file(broker_.data() + "/FORMAT").find("id "), std::string::npos);
  EXPECT_TRUE(read_file(broker_.data() + "/FORMAT").starts_with("baton-data 2\n"));
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("ready"), 0U);
  EXPECT_EQ(broker_.depth("held"), 3U);
  expect_streams();
  expect_keys();
  expect_everything();
}

/// The formats that the checkpoints of a stopped broker's shards have, smallest first.
std::set<int> formats_of(const std::string& data) {
  const auto inspected =
      run_command({paths::kBinary, "store", "inspect", "--data", data, "--json"});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  std::set<int> formats;
  const auto report = nlohmann::json::parse(inspected.out);
  for (const auto& shard : report.at("shards")) {
    formats.insert(shard.at("format_version").get<int>());
  }
  return formats;
}

// The first checkpoint converts a folder. A broker that is killed before, while or after that
// checkpoint is made answers as one that never was, and the next one converts what is left.
TEST_P(OldFolder, AKilledConversionStartsAgainAndAnswersStayTheSame) {
  EXPECT_EQ(formats_of(broker_.data()), std::set<int>{1});
  std::string expected;
  for (int pause_ms : {-1, 0, 2, 5, 10, 20, 40, 80}) {
    if (pause_ms < 0) {  // Killed while it starts.
      broker_.launch();
      std::this_thread::sleep_for(milliseconds{30});
    } else {
      ASSERT_TRUE(broker_.start()) << broker_.log();
      std::this_thread::sleep_for(milliseconds{pause_ms});
    }
    broker_.kill();
    ASSERT_TRUE(broker_.wait(seconds{20}).has_value());
  }
  ASSERT_TRUE(broker_.start()) << broker_.log();
  expected = answers();
  expect_everything();
  EXPECT_GT(expected.size(), 1'000U);
  ASSERT_EQ(broker_.terminate(), 0);
  EXPECT_EQ(formats_of(broker_.data()), std::set<int>{2});
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(answers(), expected);
  expect_streams();
  expect_keys();
  expect_queues();
}

INSTANTIATE_TEST_SUITE_P(Versions, OldFolder,
                         testing::Values("data_folder_v1", "data_folder_v1_full"));

}  // namespace
}  // namespace baton::e2e
