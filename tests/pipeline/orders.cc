#include "pipeline/orders.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <baton/broker.h>
#include <baton/lease_stream.h>
#include <baton/stream_producer.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include "e2e/process.h"
#include "pipeline/baton/queue_letter.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/deadline.h"

namespace baton::pipeline {
namespace {

using orders::OrderFate;

/// Calls `each` with every row.
template <class Each>
void select(sqlite3* database, const char* sql, Each each) {
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  while (sqlite3_step(statement) == SQLITE_ROW) each(statement);
  sqlite3_finalize(statement);
}

std::uint64_t number(sqlite3* database, const char* sql) {
  std::uint64_t result = 0;
  select(database, sql, [&](sqlite3_stmt* row) {
    result = static_cast<std::uint64_t>(sqlite3_column_int64(row, 0));
  });
  return result;
}

}  // namespace

std::size_t Inventory::count(OrderFate fate) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [&](const auto& entry) { return entry.second.fate == fate; }));
}

void produce(const e2e::BrokerProcess& broker, const std::string& stream, std::uint64_t count,
             std::uint64_t seed, Inventory& inventory, orders::OrderMix mix) {
  auto producer = client::Broker::open(broker.connection())->stream(stream).producer();
  ASSERT_TRUE(producer.has_value()) << producer.error().text;
  orders::OrderGenerator generator(seed, mix);
  for (std::uint64_t i = 0; i < count; ++i) {
    orders::GeneratedOrder order = generator.next();
    client::NewRecord record;
    record.key = order.order_uid;
    record.value = std::move(order.bytes);
    Inventory::Entry entry{.order_uid = std::move(order.order_uid), .fate = order.fate};
    producer->send(std::move(record), [&inventory, entry](const client::AppendResult& result) {
      if (result.ok()) inventory.add({result.partition.value, result.offset.value}, entry);
    });
  }
  const auto flushed = producer->flush(e2e::seconds{60});
  ASSERT_TRUE(flushed.has_value()) << flushed.error().text;
}

Outcome read_sqlite(const std::string& path) {
  Outcome outcome;
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
  sqlite3_busy_timeout(database, 5000);
  select(database, "SELECT order_uid, _partition, _offset FROM orders", [&](sqlite3_stmt* row) {
    outcome.rows.push_back(
        {.order_uid = reinterpret_cast<const char*>(sqlite3_column_text(row, 0)),
         .place = {.partition = static_cast<std::uint32_t>(sqlite3_column_int64(row, 1)),
                   .offset = sqlite3_column_int64(row, 2)}});
  });
  outcome.deliveries = number(database, "SELECT count(*) FROM deliveries");
  outcome.payments = number(database, "SELECT count(*) FROM payments");
  outcome.orphans =
      number(database,
             "SELECT (SELECT count(*) FROM items WHERE order_uid NOT IN (SELECT order_uid FROM "
             "orders)) + (SELECT count(*) FROM orders WHERE order_uid NOT IN (SELECT order_uid "
             "FROM items))");
  sqlite3_close_v2(database);
  return outcome;
}

Outcome read_postgres(const PostgresServer& server) {
  Outcome outcome;
  for (const auto& row : server.query("SELECT order_uid, _partition, _offset FROM orders")) {
    outcome.rows.push_back({.order_uid = row[0],
                            .place = {.partition = static_cast<std::uint32_t>(std::stoul(row[1])),
                                      .offset = std::stoll(row[2])}});
  }
  outcome.deliveries = std::stoull(server.value("SELECT count(*) FROM deliveries"));
  outcome.payments = std::stoull(server.value("SELECT count(*) FROM payments"));
  outcome.orphans = std::stoull(server.value(
      "SELECT (SELECT count(*) FROM items i LEFT JOIN orders o USING (order_uid) WHERE o.order_uid "
      "IS NULL) + (SELECT count(*) FROM orders o LEFT JOIN items i USING (order_uid) WHERE "
      "i.order_uid IS NULL)"));
  return outcome;
}

std::set<Place> read_letters(const e2e::BrokerProcess& broker, const std::string& queue) {
  std::set<Place> places;
  client::LeaseStreamOptions options;
  options.in_flight_max = 100'000;
  options.in_flight_bytes_max = std::uint64_t{1} << 30U;
  const std::uint64_t all = broker.depth(queue);
  const auto stream = e2e::open_stream(broker, queue, options);
  for (const client::LeasedMessage& message : e2e::take(*stream, all)) {
    const auto letter = from_message(message.headers, message.payload);
    EXPECT_TRUE(letter.has_value());
    if (letter.has_value()) places.insert({letter->record.partition, letter->record.offset});
  }
  // The id of a letter prevents a second copy.
  EXPECT_EQ(places.size(), all);
  return places;
}

void expect_everything_ended(const Inventory& inventory, const Outcome& outcome) {
  std::map<std::string_view, Place> table;
  for (const Outcome::Row& row : outcome.rows) {
    EXPECT_TRUE(table.emplace(row.order_uid, row.place).second) << row.order_uid << " is in twice";
  }
  int shown = 0;
  for (const auto& [place, entry] : inventory.entries()) {
    const auto row = table.find(entry.order_uid);
    const bool is_row = row != table.end() && row->second == place;
    const bool is_known = row != table.end() && row->second < place;
    const bool is_letter = outcome.letters.contains(place);
    const bool right = entry.fate == OrderFate::valid       ? is_row && !is_letter
                       : entry.fate == OrderFate::duplicate ? is_known && !is_letter
                                                            : is_letter && !is_row;
    if (!right && ++shown <= 10) {
      ADD_FAILURE() << "partition " << place.partition << " offset " << place.offset << " ("
                    << to_string(entry.fate) << "): in the table " << is_row << ", known before "
                    << is_known << ", dead letter " << is_letter;
    }
  }
  EXPECT_EQ(outcome.rows.size(), inventory.count(OrderFate::valid));
  EXPECT_EQ(outcome.letters.size(),
            inventory.count(OrderFate::invalid) + inventory.count(OrderFate::broken));
  EXPECT_EQ(outcome.deliveries, outcome.rows.size());
  EXPECT_EQ(outcome.payments, outcome.rows.size());
  EXPECT_EQ(outcome.orphans, 0U);
}

void expect_nothing_skipped(const Inventory& inventory, const Outcome& outcome,
                            const std::map<std::uint32_t, std::int64_t>& committed) {
  std::set<std::string_view> known;
  for (const Outcome::Row& row : outcome.rows) known.insert(row.order_uid);
  for (const auto& [place, entry] : inventory.entries()) {
    const auto mark = committed.find(place.partition);
    if (mark == committed.end() || place.offset >= mark->second) continue;
    const bool ended = outcome.letters.contains(place) || known.contains(entry.order_uid);
    EXPECT_TRUE(ended) << "partition " << place.partition << " is committed up to " << mark->second
                       << ", but " << place.offset << " is nowhere";
    if (!ended) return;
  }
}

std::map<std::uint32_t, std::int64_t> stored_offsets(const e2e::BrokerProcess& broker,
                                                     const std::string& stream,
                                                     const std::string& group) {
  std::map<std::uint32_t, std::int64_t> result;
  auto client = client::Broker::open(broker.connection());
  EXPECT_TRUE(client.has_value());
  const auto info = client->stream(stream).describe();
  EXPECT_TRUE(info.has_value());
  for (std::uint32_t partition = 0; partition < info->partitions; ++partition) {
    const auto stored = client->stream(stream).group(group).offset(PartitionNumber{partition});
    if (stored.has_value() && stored->offset.has_value()) result[partition] = stored->offset->value;
  }
  return result;
}

void make_nats_stream(const std::string& address) {
  const coord::Deadline deadline(e2e::seconds{5});
  const auto link = coord::NatsLink::connect({address}, deadline);
  ASSERT_TRUE(link.has_value());
  const nlohmann::json config{{"name", "ORDERS"}, {"subjects", {"orders.>"}}, {"storage", "file"}};
  const auto made = (*link)->api("$JS.API.STREAM.CREATE.ORDERS", config.dump(), deadline);
  ASSERT_TRUE(made.has_value() && !made->contains("error"));
}

}  // namespace baton::pipeline
