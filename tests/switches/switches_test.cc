// The registries of a build with every option off: compiled without what the options say, and
// linked without the layers of the kinds that they switch off, nor their libraries. That this
// program links is half of the test.

#include <string>

#include <gtest/gtest.h>

#include "cluster/engines/engines.h"
#include "pipeline/app/registry.h"
#include "worker/registry/registry.h"

namespace baton {
namespace {

template <class T>
std::string error_of(const Result<T>& result) {
  return result.has_value() ? "none" : result.error().text;
}

std::string no(const std::string& kind, const std::string& option) {
  return "this build has no " + kind + ": build it with -DBATON_WITH_" + option + "=ON";
}

TEST(Switches, APipelineThatNamesAKindThatIsOffIsToldHowToSwitchItOn) {
  using namespace pipeline;
  EXPECT_EQ(error_of(parse_source_url("kafka://a:1/t")), no("kafka", "KAFKA"));
  EXPECT_EQ(error_of(parse_dead_letters_url("kafkas://a:1/t")), no("kafka", "KAFKA"));
  EXPECT_EQ(error_of(parse_source_url("nats://a:1/S/s.{partition}")), no("nats", "NATS"));
  EXPECT_EQ(error_of(parse_sink_url("postgres://me@a:1/shop")), no("postgres", "POSTGRES"));
  EXPECT_EQ(error_of(parse_sink_url("postgresql://me@a:1/shop")), no("postgres", "POSTGRES"));
}

TEST(Switches, AWorkerThatNamesAStoreThatIsOffIsToldHowToSwitchItOn) {
  EXPECT_EQ(error_of(coord::open_store("nats://a:1", {})),
            "store \"nats://a:1\": this build has no stores of the kind nats: build it with "
            "-DBATON_WITH_NATS=ON");
  EXPECT_EQ(error_of(coord::open_store("etcds://a:1", {})),
            "store \"etcds://a:1\": this build has no stores of the kind etcd: build it with "
            "-DBATON_WITH_ETCD=ON");
}

TEST(Switches, AClusterOnAnEngineThatIsOffIsToldHowToSwitchItOn) {
  EXPECT_EQ(error_of(loglet::parse_engine_url("nats://a:1", "prod")),
            "'nats://a:1': " + no("nats", "NATS"));
}

TEST(Switches, WhatEveryBuildHasIsThere) {
  EXPECT_EQ(error_of(pipeline::parse_source_url("baton-stream://a:1/s")), "none");
  EXPECT_EQ(error_of(pipeline::parse_sink_url("sqlite:orders.db")), "none");
  EXPECT_EQ(error_of(pipeline::parse_dead_letters_url("file:letters")), "none");
  EXPECT_EQ(error_of(coord::parse_store_url("baton://a:1")), "none");
  EXPECT_EQ(error_of(pipeline::parse_sink_url("redis:x")),
            "'redis:x' is none of sqlite:PATH, http://HOST:PORT/PATH, stdout");
}

}  // namespace
}  // namespace baton
