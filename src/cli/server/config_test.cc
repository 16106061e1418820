#include "cli/server/config.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using std::chrono::seconds;

std::string error_of(std::string_view text) {
  const auto config = parse_config(text, "c.yaml");
  return config ? "no error" : config.error().text;
}

TEST(Config, AnEmptyFileIsTheDefaults) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "{}"}) {
    const auto config = parse_config(text, "c.yaml");
    ASSERT_TRUE(config.has_value()) << text;
    EXPECT_EQ(config->api.listen, "127.0.0.1:7470");
    EXPECT_EQ(config->fsync.kind, FsyncMode::Kind::always);
    EXPECT_EQ(config->stop_timeout, seconds{10});
  }
}

TEST(Config, EverySettingIsRead) {
  const auto config = parse_config(
      "data: /d\nlisten: 127.0.0.1:1\nhttp: 127.0.0.1:2\nfsync: interval:20\nshards: 4\n"
      "insecure: true\ntls-cert: c\ntls-key: k\ntls-ca: a\nkeepalive-time: 4s\n"
      "keepalive-timeout: 15s\nrequest-max: 1MiB\ncheckpoint-interval: 6s\nstop-timeout: 7s\n"
      "log-level: error\nlog-json: true\nready-file: r\n",
      "c.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->data, "/d");
  EXPECT_EQ(config->api.listen, "127.0.0.1:1");
  EXPECT_EQ(config->api.http_listen, "127.0.0.1:2");
  EXPECT_EQ(config->fsync.kind, FsyncMode::Kind::interval);
  EXPECT_EQ(config->shards, 4U);
  EXPECT_TRUE(config->api.insecure);
  EXPECT_EQ(config->api.tls_cert, "c");
  EXPECT_EQ(config->api.tls_key, "k");
  EXPECT_EQ(config->api.tls_ca, "a");
  EXPECT_EQ(config->api.keepalive_time, seconds{4});
  EXPECT_EQ(config->api.keepalive_timeout, seconds{15});
  EXPECT_EQ(config->api.message_bytes_max, limits::kMiB);
  EXPECT_EQ(config->checkpoint_interval, seconds{6});
  EXPECT_EQ(config->stop_timeout, seconds{7});
  EXPECT_EQ(config->log_level, LogLevel::error);
  EXPECT_TRUE(config->log_json);
  EXPECT_EQ(config->ready_file, "r");
}

TEST(Config, HttpCanBeOff) {
  EXPECT_EQ(parse_config("http: off\n", "c.yaml").value().api.http_listen, "");
}

// A typo that is ignored is a setting that silently has no effect.
TEST(Config, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const std::string error = error_of("data: /d\n\nsharks: 3\n");
  EXPECT_TRUE(error.starts_with("c.yaml:3: there is no setting 'sharks'; there are data, listen"))
      << error;
}

TEST(Config, AWrongValueNamesItsLineAndTheRange) {
  EXPECT_EQ(error_of("data: /d\nshards: many\n"),
            "c.yaml:2: shards: 'many' is not a whole number from 1 to 256");
  EXPECT_EQ(error_of("shards: 257\n"),
            "c.yaml:1: shards: '257' is not a whole number from 1 to 256");
  EXPECT_EQ(error_of("stop-timeout: 2h\n"), "c.yaml:1: stop-timeout: '2h' is not from 0 to 1h");
  EXPECT_EQ(error_of("request-max: 1GiB\n"),
            "c.yaml:1: request-max: '1GiB' is not from 64KiB to 256MiB");
  EXPECT_EQ(error_of("log-json: maybe\n"), "c.yaml:1: log-json: 'maybe' is neither true nor false");
  EXPECT_EQ(error_of("data: ''\n"), "c.yaml:1: data: is empty");
  EXPECT_TRUE(error_of("listen: nowhere\n").starts_with("c.yaml:1: listen: "));
}

TEST(Config, AValueOfTheWrongShapeIsAnError) {
  EXPECT_EQ(error_of("data: [a]\n"), "c.yaml:1: data: is not a single value");
  EXPECT_EQ(error_of("data: {a: b}\n"), "c.yaml:1: data: is not a single value");
  EXPECT_EQ(error_of("data:\n"), "c.yaml:1: data: is not a single value");
  EXPECT_EQ(error_of("- data\n"), "c.yaml:1: is not a list of 'name: value' lines");
  EXPECT_EQ(error_of("data\n"), "c.yaml:1: is not a list of 'name: value' lines");
}

TEST(Config, TheSameNameTwiceIsAnError) {
  EXPECT_EQ(error_of("data: a\ndata: b\n"), "c.yaml:2: data: is there twice");
}

TEST(Config, ASecondDocumentIsAnError) {
  EXPECT_EQ(error_of("data: a\n---\ndata: b\n"), "c.yaml: holds more than one document");
}

TEST(Config, BrokenYamlNamesItsLine) {
  EXPECT_TRUE(error_of("data: a\nlisten: [open\n").starts_with("c.yaml:")) << error_of("a: [b\n");
  EXPECT_TRUE(error_of("data: a\n  b: c\n").starts_with("c.yaml:2: "));
  EXPECT_TRUE(error_of("data: *nobody\n").starts_with("c.yaml:1: "));
}

TEST(Config, AHugeFileIsRefusedUnread) {
  EXPECT_EQ(error_of(std::string(kConfigBytesMax + 1, ' ')),
            "c.yaml: is larger than 1048576 bytes");
}

// Deep nesting must end in an error, not in a stack overflow.
TEST(Config, DeepNestingIsRefused) {
  for (const char* opening : {"[", "{", "- ", "? "}) {
    std::string text;
    while (text.size() < 100'000) text += opening;
    EXPECT_NE(error_of(text), "no error") << opening;
  }
}

// Flags win over the file: they are applied after it.
TEST(Config, LaterSettingsWin) {
  ServerConfig config;
  ASSERT_TRUE(apply_config(config, "shards: 2\nlog-json: true\n", "c.yaml").has_value());
  for (const Setting& setting : server_settings()) {
    if (setting.name == "shards") {
      ASSERT_TRUE(setting.set(config, "8").has_value());
    }
  }
  EXPECT_EQ(config.shards, 8U);
  EXPECT_TRUE(config.log_json);
}

TEST(Config, ARefusedValueChangesNothing) {
  for (const Setting& setting : server_settings()) {
    ServerConfig config;
    const Status status = setting.set(config, "");
    EXPECT_FALSE(status.has_value()) << setting.name;
  }
}

TEST(Config, AReloadNamesWhatNeedsARestart) {
  auto running = *parse_config("data: d\nlog-level: info\nrequest-max: 1MiB\n", "c");
  auto wanted = *parse_config("data: d\nlog-level: debug\nkeepalive-time: 3s\n", "c");
  EXPECT_EQ(needs_restart(running, wanted),
            (std::vector<std::string>{"keepalive-time", "request-max"}));
  EXPECT_TRUE(needs_restart(running, running).empty());
  // Another certificate is fine, but a first one is not.
  running.given["tls-cert"] = "a.pem";
  wanted = running;
  wanted.given["tls-cert"] = "b.pem";
  wanted.given["tls-ca"] = "ca.pem";
  EXPECT_EQ(needs_restart(running, wanted), std::vector<std::string>{"tls-ca"});
}

}  // namespace
}  // namespace baton::cli
