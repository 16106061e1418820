#include "base/net/listen.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Listen, AddressesThatStayOnThisMachine) {
  for (const char* text : {"127.0.0.1:7470", "127.9.9.9:1", "localhost:0", "[::1]:7470",
                           "[::ffff:127.0.0.1]:1", "unix:/run/baton.sock"}) {
    const Result<ListenAddress> address = parse_listen(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_TRUE(address->is_local()) << text;
    EXPECT_EQ(address->to_string(), text);
    EXPECT_TRUE(check_listen(*address, false, false).has_value()) << text;
  }
}

// Plain text on the network must be the operator's choice, never a default.
TEST(Listen, BeyondThisMachineNeedsTlsOrInsecure) {
  for (const char* text : {"0.0.0.0:7470", "[::]:7470", "10.0.0.1:1", "example.org:1",
                           "127.example.org:1", "localhost.example.org:1", "[::ffff:10.0.0.1]:1"}) {
    const Result<ListenAddress> address = parse_listen(text);
    ASSERT_TRUE(address.has_value()) << text;
    const Status refused = check_listen(*address, false, false);
    ASSERT_FALSE(refused.has_value()) << text;
    for (const char* part : {"--listen", "other machines", "--tls-cert", "--insecure"}) {
      EXPECT_NE(refused.error().text.find(part), std::string::npos) << refused.error().text;
    }
    EXPECT_TRUE(check_listen(*address, true, false).has_value()) << text;
    EXPECT_TRUE(check_listen(*address, false, true).has_value()) << text;
  }
}

// HTTP has no TLS, so the error must not advise to use TLS.
TEST(Listen, HttpBeyondThisMachineNeedsInsecure) {
  const ListenAddress address = *parse_listen("0.0.0.0:7471");
  const Status refused = check_http_listen(address, false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text.find("--insecure"), std::string::npos);
  EXPECT_EQ(refused.error().text.find("--tls"), std::string::npos);
  EXPECT_TRUE(check_http_listen(address, true).has_value());
  EXPECT_TRUE(check_http_listen(*parse_listen("localhost:1"), false).has_value());
}

TEST(Listen, WhatIsNoAddressIsRefused) {
  for (const char* text :
       {"", "localhost", ":7470", "localhost:", "localhost:x", "localhost:65536", "localhost:-1",
        "localhost:1x", "::1:7470", "[::1]7470", "[::1", "unix:"}) {
    const Result<ListenAddress> address = parse_listen(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_NE(address.error().text.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace baton
