#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"
#include "pipeline/postgres_server.h"

namespace baton::pipeline {

inline constexpr orders::OrderMix kNoTrouble{.invalid = 0, .broken = 0, .duplicate = 0};

/// A broker with the stream "orders", and a PostgreSQL.
class PostgresPipeline : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }
  /// `initdb`: further options for it.
  void begin(std::vector<std::string> initdb = {}) {
    if (const std::string why = PostgresServer::missing(); !why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    server_.emplace(std::move(initdb));
    ASSERT_TRUE(server_->start());
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream("orders").create(4).has_value());
  }
  PipelineFolder::Settings settings(PipelineFolder::Settings more = {}) {
    PipelineFolder::Settings result{{"sink.url", server_->url()}, {"batch.records", "50"}};
    for (const auto& [path, value] : more) result[path] = value;
    return result;
  }
  void send(std::uint64_t count, std::uint64_t seed = 1, orders::OrderMix mix = kSomeTrouble) {
    produce(broker_, "orders", count, seed, inventory_, mix);
  }
  bool all_end(const PipelineProcess& pipeline) {
    return e2e::eventually([&] { return pipeline.ended() >= inventory_.entries().size(); },
                           e2e::seconds{60});
  }
  std::uint64_t letters() { return broker_.depth("orders.dlq"); }
  Outcome outcome() {
    Outcome result = read_postgres(*server_);
    result.letters = read_letters(broker_, "orders.dlq");
    return result;
  }
  void expect_end(PipelineProcess& pipeline) {
    EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
    expect_everything_ended(inventory_, outcome());
  }

  std::optional<PostgresServer> server_;
  e2e::BrokerProcess broker_;
  Inventory inventory_;
};

}  // namespace baton::pipeline
