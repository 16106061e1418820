#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline/engine/owned_partition.h"
#include "pipeline/orders/order_generator.h"
#include "pipeline/postgres/postgres_sink.h"
#include "pipeline/postgres_server.h"

namespace baton::pipeline {

/// One PostgreSQL for all tests of a program; at the start of each test it runs and is empty.
class PostgresTest : public ::testing::Test {
 public:
  static void TearDownTestSuite() { server_.reset(); }

 protected:
  using MaybeError = std::optional<flow::SinkError>;

  void SetUp() override;

  static PostgresServer& server() { return *server_; }
  /// Timeouts are short; `change` may change any option.
  std::unique_ptr<PostgresSink> make_sink(
      const std::function<void(PostgresSinkOptions&)>& change = {}) const;
  /// With its tables created.
  std::unique_ptr<PostgresSink> ready_sink(
      const std::function<void(PostgresSinkOptions&)>& change = {}) const;

  /// Valid orders `first`, ..., at the offsets of the same numbers.
  Items orders(std::uint64_t first, std::size_t count);
  Item order(std::uint64_t number) { return std::move(orders(number, 1).front()); }
  /// A record of any bytes.
  Item item_of(std::string bytes, std::int64_t offset);
  std::string uid(std::uint64_t number) const {
    return generator_.generate_valid(number).order_uid;
  }
  std::string bytes(std::uint64_t number) const { return generator_.generate_valid(number).bytes; }

  static std::int64_t count(const std::string& table) {
    return std::stoll(server().value("SELECT count(*) FROM " + table));
  }
  /// A trigger that silently drops orders for which `condition` holds.
  static void throw_away(const std::string& condition);
  /// An order, with other texts in some of its fields.
  static std::string with(const std::string& order,
                          const std::vector<std::pair<std::string, std::string>>& fields);
  static constexpr const char* kNotTaken =
      "unknown the row was not taken, and its key is not there: a trigger?";
  static std::int64_t items_of(const Items& items);

  std::shared_ptr<OwnedPartition> assignment_ = std::make_shared<OwnedPartition>(3, 1, 0);
  orders::OrderGenerator generator_{7};

 private:
  static std::unique_ptr<PostgresServer> server_;
  std::unique_ptr<Preparer> preparer_;
};

/// How many have this fate.
std::size_t count_of(const Items& items, Fate fate);

std::string name_of(const std::optional<flow::SinkError>& error);

}  // namespace baton::pipeline
