// A data folder that an older binary wrote, and in which it was killed, is opened by this one:
// everything is there. tests/compat/make_data_folder.py made the folders, and says what they hold.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <baton/kv_client.h>
#include <baton/stream_client.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

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
    const auto stream = open_stream(broker_, queue, {.max_in_flight = 100});
    const auto messages = take(*stream, count);
    for (const auto& message : messages) stream->ack(message.token);
    EXPECT_TRUE(stream->close(seconds{20}).has_value());
    std::vector<std::string> payloads = payloads_of(messages);
    std::ranges::sort(payloads);
    return payloads;
  }
  [[nodiscard]] std::vector<std::string> values(std::uint32_t partition) const {
    std::vector<std::string> all;
    auto client = client::StreamClient::connect(broker_.connection());
    auto reader = client->read({.stream = "orders", .partition = partition});
    while (true) {
      auto read = reader->next();
      EXPECT_TRUE(read.has_value()) << client::to_string(read.error());
      if (!read.has_value() || !read->has_value()) return all;
      for (client::Record& record : **read) all.push_back(record.value.value_or("none"));
    }
  }

  void expect_queues();
  void expect_streams();
  void expect_keys();

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
  auto client = client::StreamClient::connect(broker_.connection());
  const auto stream = client->describe_stream("orders");
  ASSERT_TRUE(stream.has_value());
  ASSERT_EQ(stream->details.size(), 3U);
  EXPECT_GT(stream->details[0].segments, 1U);
  for (const auto& partition : stream->details) EXPECT_EQ(partition.read_only, "");
  const auto offset = [&](std::size_t partition, std::string_view group) {
    for (const auto& each : stream->details[partition].groups) {
      if (each.group == group) return each.offset.value_or(-1);
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(offset(0, "billing"), 140);
  EXPECT_EQ(offset(1, "audit"), 100);
}

void OldFolder::expect_keys() {
  auto keys = client::KvClient::connect(broker_.connection());
  std::set<std::string> expected{"shared"};
  for (const std::string& phase : kPhases) {
    for (int i = 0; i < 4; ++i) expected.insert(fmt::format("{}.{}", phase, i));
  }
  const auto shared = keys->get("settings", "shared");
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

TEST_P(OldFolder, EverythingIsThere) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  expect_streams();
  expect_keys();
  expect_queues();
  // From here on it is a folder like any other.
  ASSERT_EQ(broker_.terminate(), 0);
  EXPECT_NE(read_file(broker_.data() + "/FORMAT").find("id "), std::string::npos);
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("ready"), 0U);
  EXPECT_EQ(broker_.depth("held"), 3U);
  expect_streams();
  expect_keys();
}

INSTANTIATE_TEST_SUITE_P(Versions, OldFolder, testing::Values("data_folder_v1"));

}  // namespace
}  // namespace baton::e2e
