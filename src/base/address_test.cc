#include "base/address.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_broker_address(text);
  if (parsed) return "none";
  EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
  return parsed.error().text;
}

TEST(Address, HasAHostAndAPort) {
  EXPECT_EQ(parse_address("broker.example:7470")->host, "broker.example");
  EXPECT_EQ(parse_address("[::1]:7470")->host, "::1");
  EXPECT_EQ(parse_address("127.0.0.1:65535")->port, 65535);
}

TEST(Address, TheSchemeSaysWhetherItIsTls) {
  EXPECT_FALSE(parse_broker_address("a:1")->is_tls);
  EXPECT_FALSE(parse_broker_address("a:1")->is_plain);
  EXPECT_TRUE(parse_broker_address("baton://a:1")->is_plain);
  EXPECT_TRUE(parse_broker_address("batons://a:1")->is_tls);
  EXPECT_EQ(parse_broker_address("batons://a:1")->address, "a:1");
  EXPECT_EQ(parse_broker_address("unix:/run/baton.sock")->address, "unix:/run/baton.sock");
}

// A person who types an address by hand must be told which part of it is wrong.
TEST(Address, ErrorsNameThePart) {
  EXPECT_EQ(error_of("127.0.0.1:99999"), "address \"127.0.0.1:99999\": port 99999 is above 65535");
  EXPECT_EQ(error_of("a:99999999999999999999"),
            "address \"a:99999999999999999999\": port 99999999999999999999 is above 65535");
  EXPECT_EQ(error_of("a:0"), "address \"a:0\": \"0\" is not a port");
  EXPECT_EQ(error_of("a:x"), "address \"a:x\": \"x\" is not a port");
  EXPECT_EQ(error_of("a:"), "address \"a:\": \"\" is not a port");
  EXPECT_EQ(error_of("a"), "address \"a\": the port is missing in \"a\"");
  EXPECT_EQ(error_of("[::1]"), "address \"[::1]\": the port is missing in \"[::1]\"");
  EXPECT_EQ(error_of("a b:1"), "address \"a b:1\": \"a b\" is not a host");
  EXPECT_EQ(error_of(":1"), "address \":1\": \"\" is not a host");
  EXPECT_EQ(error_of("http://a:1"),
            "address \"http://a:1\": a broker's address is HOST:PORT, baton://HOST:PORT or "
            "batons://HOST:PORT");
}

}  // namespace
}  // namespace baton
