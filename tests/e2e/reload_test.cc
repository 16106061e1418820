// What a broker reloads on SIGHUP.
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

bool logs(const BrokerProcess& broker, const std::string& text) {
  return eventually([&] { return broker.log().find(text) != std::string::npos; });
}

// A hang-up used to end the broker silently.
TEST(Reload, AHangUpEndsNothing) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();

  broker.signal(SIGHUP);

  EXPECT_TRUE(logs(broker, "event=reloaded")) << broker.log();
  EXPECT_EQ(broker.cli({"queue", "list"}).exit_code, 0);
  EXPECT_TRUE(broker.is_running());
}

TEST(Reload, TheLogLevelFollowsTheConfigFile) {
  BrokerProcess broker;
  const std::string config = broker.folder() / "config.yaml";
  write_file(config, "log-level: error\nkeepalive-time: 2s\n");
  broker.flags() = {"--config", config};
  ASSERT_TRUE(broker.start()) << broker.log();

  write_file(config, "log-level: info\nkeepalive-time: 2s\n");
  broker.signal(SIGHUP);
  ASSERT_TRUE(logs(broker, "event=reloaded log_level=info")) << broker.log();

  write_file(config, "log-level: info\nkeepalive-time: 9s\n");
  broker.signal(SIGHUP);
  EXPECT_TRUE(logs(broker, "event=reload_ignored setting=keepalive-time")) << broker.log();

  write_file(config, "log-level: loud\n");
  broker.signal(SIGHUP);
  EXPECT_TRUE(logs(broker, "event=reload_failed")) << broker.log();
  EXPECT_EQ(broker.cli({"queue", "list"}).exit_code, 0);
}

}  // namespace
}  // namespace baton::e2e
