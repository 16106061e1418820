#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "e2e/broker_process.h"
#include "pipeline/orders/order_generator.h"
#include "pipeline/postgres_server.h"

/// Orders that go through a pipeline, and the one check of what became of them.
namespace baton::pipeline {

/// The position of a record in its source.
struct Place {
  std::uint32_t partition = 0;
  std::int64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

/// Everything that was sent to a source.
class Inventory {
 public:
  struct Entry {
    std::string order_uid;
    orders::OrderFate fate = orders::OrderFate::valid;
  };

  void add(Place place, Entry entry) {
    const std::scoped_lock lock(mutex_);
    entries_.emplace(place, std::move(entry));
  }
  [[nodiscard]] const std::map<Place, Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t count(orders::OrderFate fate) const;

 private:
  std::mutex mutex_;  // Confirmations come on other threads.
  std::map<Place, Entry> entries_;
};

/// Where records ended, according to the sink and the dead letters.
struct Outcome {
  struct Row {
    std::string order_uid;
    Place place;
  };
  std::vector<Row> rows;
  std::uint64_t deliveries = 0;
  std::uint64_t payments = 0;
  std::uint64_t orphans = 0;  // Children without an order, orders without an item.
  std::set<Place> letters;
};

inline constexpr orders::OrderMix kSomeTrouble{.invalid = 20, .broken = 10, .duplicate = 20};

/// Sends generated orders, by their key, and waits until each is confirmed.
void produce(const e2e::BrokerProcess& broker, const std::string& stream, std::uint64_t count,
             std::uint64_t seed, Inventory& inventory, orders::OrderMix mix = kSomeTrouble);

Outcome read_sqlite(const std::string& path);
Outcome read_postgres(const PostgresServer& server);
std::set<Place> read_letters(const e2e::BrokerProcess& broker, const std::string& queue);

/// Every record ended in exactly one of {table, duplicate, dead letter}, the right one; of each
/// key, the first record is in the table: the order was kept.
void expect_everything_ended(const Inventory& inventory, const Outcome& outcome);

/// Every committed record has ended: checked at any time, above all after a kill.
void expect_nothing_skipped(const Inventory& inventory, const Outcome& outcome,
                            const std::map<std::uint32_t, std::int64_t>& committed);
/// What a group has stored, by partition.
std::map<std::uint32_t, std::int64_t> stored_offsets(const e2e::BrokerProcess& broker,
                                                     const std::string& stream,
                                                     const std::string& group);

/// The stream ORDERS of JetStream, with the subjects orders.>.
void make_nats_stream(const std::string& address);

}  // namespace baton::pipeline
