#include "pipeline/postgres_fixture.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/orders/orders.h"

namespace baton::pipeline {

std::unique_ptr<PostgresServer> PostgresTest::server_;

void PostgresTest::SetUp() {
  if (const std::string why = PostgresServer::missing(); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    GTEST_SKIP() << why;
  }
  if (server_ == nullptr) server_ = std::make_unique<PostgresServer>();
  if (!server_->is_running()) {
    ASSERT_TRUE(server_->start());
  }
  server_->query(
      "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  const auto sink = make_sink();
  preparer_ = sink->preparer();
}

std::unique_ptr<PostgresSink> PostgresTest::make_sink(
    const std::function<void(PostgresSinkOptions&)>& change) const {
  PostgresSinkOptions options{{.pipeline = "test", .source = "orders-stream", .lanes = 2}};
  options.url = server().url();
  options.statement_timeout = std::chrono::seconds(5);
  options.connect_timeout = std::chrono::seconds(2);
  if (change) change(options);
  return std::make_unique<PostgresSink>(std::move(options),
                                        schema::Schema::compile(orders::order_schema()).value(),
                                        schema::Mapping::compile(orders::order_mapping()).value());
}

std::unique_ptr<PostgresSink> PostgresTest::ready_sink(
    const std::function<void(PostgresSinkOptions&)>& change) const {
  auto sink = make_sink(change);
  const auto made = sink->check(true);
  EXPECT_TRUE(made.has_value()) << made.error().text;
  return sink;
}

Item PostgresTest::item_of(std::string bytes, std::int64_t offset) {
  Item item;
  item.record.partition = assignment_->partition();
  item.record.offset = offset;
  item.record.value = std::move(bytes);
  item.assignment = assignment_;
  auto prepared = preparer_->prepare(item.record);
  EXPECT_TRUE(prepared.has_value()) << prepared.error().text;
  if (prepared.has_value()) item.prepared = *std::move(prepared);
  return item;
}

Items PostgresTest::orders(std::uint64_t first, std::size_t count) {
  Items items;
  for (std::uint64_t number = first; number < first + count; ++number) {
    items.push_back(item_of(bytes(number), static_cast<std::int64_t>(number)));
  }
  return items;
}

std::int64_t PostgresTest::items_of(const Items& items) {
  std::int64_t sum = 0;
  for (const Item& item : items) {
    sum += std::ranges::count(rows_of(item).rows(), 3U, &schema::DocumentRows::Row::table);
  }
  return sum;
}

void PostgresTest::throw_away(const std::string& condition) {
  server().query(
      fmt::format("CREATE FUNCTION throw_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                  "IF {} THEN RETURN NULL; END IF; RETURN NEW; END $$; "
                  "CREATE TRIGGER throw_away BEFORE INSERT ON orders FOR EACH ROW "
                  "EXECUTE FUNCTION throw_away()",
                  condition));
}

std::string PostgresTest::with(const std::string& order,
                               const std::vector<std::pair<std::string, std::string>>& fields) {
  nlohmann::json json = nlohmann::json::parse(order);
  for (const auto& [field, value] : fields) json[field] = value;
  return json.dump();
}

std::size_t count_of(const Items& items, Fate fate) {
  return static_cast<std::size_t>(std::ranges::count(items, fate, &Item::fate));
}

std::string name_of(const std::optional<flow::SinkError>& error) {
  if (!error.has_value()) return "none";
  return fmt::format("{} {}{}{}", to_string(error->error_class), error->code,
                     error->code.empty() ? "" : ": ", error->text);
}

}  // namespace baton::pipeline
