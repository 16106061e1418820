#include <array>

#include <gtest/gtest.h>

#include "worker/broker/kind.h"
#include "worker/nats/kind.h"
#include "worker/registry/registry.h"

namespace baton::coord {
namespace {

std::string error_of(std::string_view text) {
  const auto url = parse_store_url(text);
  if (url) return "none";
  EXPECT_EQ(url.error().code, Errc::invalid_argument);
  return url.error().text;
}

TEST(StoreUrl, ABrokerNeedsNoMoreThanItsAddress) {
  const auto url = parse_store_url("baton://127.0.0.1:7470").value();

  EXPECT_EQ(url, (StoreUrl{.kind = &kBrokerKind, .endpoints = {"127.0.0.1:7470"}}));
  EXPECT_EQ(url.bucket, "baton-leases");
  EXPECT_EQ(to_string(url), "baton://127.0.0.1:7470/baton-leases");
}

TEST(StoreUrl, AClusterHasSeveralAddressesAndReplicas) {
  const auto url =
      parse_store_url("nats://a:4222,b.c:4223,[::1]:4224/my_leases?replicas=3").value();

  EXPECT_EQ(url.kind, &kNatsKind);
  EXPECT_EQ(url.endpoints, (std::vector<std::string>{"a:4222", "b.c:4223", "[::1]:4224"}));
  EXPECT_EQ(url.bucket, "my_leases");
  EXPECT_EQ(url.replicas, 3U);
  EXPECT_EQ(to_string(url), "nats://a:4222,b.c:4223,[::1]:4224/my_leases?replicas=3");
}

TEST(StoreUrl, TheSchemeSaysWhetherItIsTls) {
  EXPECT_TRUE(parse_store_url("batons://a:1").value().tls);
  EXPECT_FALSE(parse_store_url("nats://a:1").value().tls);
  EXPECT_EQ(to_string(parse_store_url("natss://a:1,b:2/x").value()), "natss://a:1,b:2/x");
  EXPECT_EQ(to_string(parse_store_url("tls://a:1/x").value()), "natss://a:1/x");
  EXPECT_EQ(to_string(parse_store_url("etcds://a:1/x").value()), "etcds://a:1/x");
}

// A person who types a URL by hand must be told which part of it is wrong.
TEST(StoreUrl, ErrorsNameThePart) {
  EXPECT_EQ(error_of("127.0.0.1:7470"),
            "store \"127.0.0.1:7470\": it begins with none of baton://, nats:// and etcd://");
  EXPECT_EQ(
      error_of("redis://a:1"),
      "store \"redis://a:1\": \"redis\" is no kind of store: baton, nats or etcd is, and with TLS "
      "batons, natss or etcds");
  EXPECT_EQ(error_of("nats://"), "store \"nats://\": the host is missing");
  EXPECT_EQ(error_of("nats:///x"), "store \"nats:///x\": the host is missing");
  EXPECT_EQ(error_of("etcd://a"), "store \"etcd://a\": the port is missing in \"a\"");
  EXPECT_EQ(error_of("etcd://[::1]"), "store \"etcd://[::1]\": the port is missing in \"[::1]\"");
  EXPECT_EQ(error_of("etcd://a:70000"), "store \"etcd://a:70000\": port 70000 is above 65535");
  EXPECT_EQ(error_of("etcd://a:0"), "store \"etcd://a:0\": \"0\" is not a port");
  EXPECT_EQ(error_of("etcd://a b:1"), "store \"etcd://a b:1\": \"a b\" is not a host");
  EXPECT_EQ(error_of("etcd://a:1,:2"), "store \"etcd://a:1,:2\": \"\" is not a host");
  EXPECT_EQ(error_of("etcd://a:1,"), "store \"etcd://a:1,\": the port is missing in \"\"");
  EXPECT_EQ(error_of("baton://a:1,b:2"), "store \"baton://a:1,b:2\": a broker has one address");
  EXPECT_EQ(error_of("nats://a:1/"),
            "store \"nats://a:1/\": the bucket's name is missing after the /");
  EXPECT_EQ(
      error_of("nats://a:1/x.y"),
      "store \"nats://a:1/x.y\": \"x.y\" is not a bucket's name: letters, digits, - and _, at "
      "most 64");
  EXPECT_EQ(error_of("etcd://a:1?replicas=3"),
            "store \"etcd://a:1?replicas=3\": only nats:// takes options after the ?");
  EXPECT_EQ(error_of("nats://a:1?copies=3"),
            "store \"nats://a:1?copies=3\": \"copies=3\" is no option: replicas=N is");
  EXPECT_EQ(error_of("nats://a:1?replicas=six"),
            "store \"nats://a:1?replicas=six\": replicas=\"six\" is not a number from 1 to 5");
}

TEST(StoreUrl, AKindThatIsSwitchedOffSaysHowToSwitchItOn) {
  constexpr std::array kRows{StoreRow{&kBrokerKind, &kBrokerAdapter},
                             StoreRow{&kNatsKind, nullptr}};
  EXPECT_EQ(parse_store_url("natss://a:1", kRows).error().text,
            "store \"natss://a:1\": this build has no stores of the kind nats: build it with "
            "-DBATON_WITH_NATS=ON");
  EXPECT_EQ(parse_store_url("redis://a:1", kRows).error().text,
            "store \"redis://a:1\": \"redis\" is no kind of store: baton is, and with TLS batons");
}

// Errors end up in logs.
TEST(StoreUrl, APasswordIsRefusedAndNotRepeated) {
  EXPECT_EQ(error_of("nats://me:secret@a:1"),
            "user names and passwords have no place in a store's URL: give --user and "
            "--password-file, or BATON_USER and BATON_PASSWORD");
}

TEST(StoreUrl, HasLimits) {
  std::string many = "nats://a:1";
  for (int i = 0; i < 16; ++i) many += ",a:1";
  EXPECT_NE(error_of(many).find("more than 16 addresses"), std::string::npos);
  EXPECT_EQ(error_of("nats://" + std::string(9000, 'a')),
            "the store's URL has 9007 bytes; the limit is 8192");
}

}  // namespace
}  // namespace baton::coord
