#include "cluster/engines/engines.h"

#include <gtest/gtest.h>

namespace baton::loglet {
namespace {

std::string refusal(std::string_view url, std::string_view name = "prod") {
  const auto parsed = parse_engine_url(url, name);
  return parsed.has_value() ? "taken" : parsed.error().text;
}

TEST(Engines, AUrlNamesTheServersInOrder) {
  const auto parsed = parse_engine_url("nats://a:4222,b:4222,[::1]:4223", "prod-2");
  ASSERT_TRUE(parsed.has_value()) << to_string(parsed.error());
  EXPECT_NE(parsed->engine, nullptr);
  EXPECT_EQ(parsed->cluster.servers, (std::vector<std::string>{"a:4222", "b:4222", "[::1]:4223"}));
  EXPECT_EQ(parsed->cluster.name, "prod-2");
}

TEST(Engines, ABadUrlIsRefusedWithItsReason) {
  EXPECT_NE(refusal("natss://a:4222").find("begins with nats://"), std::string::npos);
  EXPECT_NE(refusal("a:4222").find("begins with nats://"), std::string::npos);
  EXPECT_NE(refusal("nats://").find("nats://"), std::string::npos);
  EXPECT_NE(refusal("nats://a"), "taken");
  EXPECT_NE(refusal("nats://a:4222,"), "taken");
  EXPECT_NE(refusal("nats://a:99999"), "taken");
  EXPECT_NE(refusal("nats://a:4222", "").find("the cluster's name ''"), std::string::npos);
  EXPECT_NE(refusal("nats://a:4222", "Prod"), "taken");
  EXPECT_NE(refusal("nats://a:4222", std::string(33, 'a')), "taken");
  EXPECT_EQ(refusal("nats://a:4222", std::string(32, 'a')), "taken");
}

}  // namespace
}  // namespace baton::loglet
