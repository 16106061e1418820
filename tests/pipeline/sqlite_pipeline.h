#pragma once

#include <cstdint>
#include <string>

#include <baton/broker.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "e2e/broker_process.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {

/// A broker with the stream "orders", whose records end in SQLite.
class SqlitePipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(broker_.start());
    create_stream(4);
  }
  void create_stream(std::uint32_t partitions) {
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    const auto created = client->stream("orders").create(partitions);
    ASSERT_TRUE(created.has_value()) << created.error().text;
  }
  void delete_stream() {
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    const auto deleted = client->stream("orders").drop();
    ASSERT_TRUE(deleted.has_value()) << deleted.error().text;
  }
  void send(std::uint64_t count, std::uint64_t seed = 1, orders::OrderMix mix = kSomeTrouble) {
    produce(broker_, "orders", count, seed, inventory_, mix);
  }
  Outcome outcome(const PipelineFolder& folder) {
    Outcome result = read_sqlite(folder.database());
    result.letters = read_letters(broker_, "orders.dlq");
    return result;
  }
  static std::string sql(const std::string& path, const std::string& text) {
    sqlite3* database = nullptr;
    std::string problem;
    if (sqlite3_open(path.c_str(), &database) != SQLITE_OK ||
        sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      problem = sqlite3_errmsg(database);
    }
    sqlite3_close_v2(database);
    return problem;
  }
  std::uint64_t letters() { return broker_.depth("orders.dlq"); }
  bool all_end(const PipelineProcess& pipeline, std::uint64_t before = 0) {
    return e2e::eventually([&] { return before + pipeline.ended() >= inventory_.entries().size(); },
                           e2e::seconds{60});
  }

  e2e::BrokerProcess broker_;
  Inventory inventory_;
};

}  // namespace baton::pipeline
