// Everything at once: orders with trouble among them, while the database is stopped, restarted,
// made read-only and loses its connections, the pipeline is killed again and again, and a second
// one joins and leaves. The counts at the end are the generator's. A small one in `./dev test`,
// 100 000 orders in `./dev test --long`.
#include <memory>
#include <string>
#include <thread>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"
#include "pipeline/postgres_server.h"

namespace baton::pipeline {
namespace {

using e2e::BrokerProcess;
using e2e::eventually;
using e2e::milliseconds;
using e2e::seconds;

struct Size {
  std::uint64_t orders;
  std::uint64_t portions;
  int kills;
};
Size size() { return e2e::is_long_run() ? Size{100'000, 20, 10} : Size{12'000, 6, 3}; }

struct Delivery {
  const char* name;
  const char* delivery;
  bool has_key = true;
};

class Soak : public ::testing::TestWithParam<Delivery> {
 protected:
  void SetUp() override {
    if (const std::string why = PostgresServer::missing(); !why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    ASSERT_TRUE(server_.start());
    ASSERT_TRUE(broker_.start());
    auto client = client::Broker::open(broker_.connection());
    ASSERT_TRUE(client.has_value());
    ASSERT_TRUE(client->stream("orders").create(6).has_value());
  }
  Outcome outcome() {
    Outcome result = read_postgres(server_);
    result.letters = read_letters(broker_, "orders.dlq");
    return result;
  }
  void disturb_database(std::uint64_t turn) {
    switch (turn % 4) {
      case 0: server_.terminate_backends(); break;
      case 1:
        server_.set_read_only(true);
        std::this_thread::sleep_for(milliseconds(500));
        server_.set_read_only(false);
        break;
      case 2:
        server_.stop_immediate();
        std::this_thread::sleep_for(milliseconds(500));
        ASSERT_TRUE(server_.start());
        break;
      default:
        server_.pause();
        std::this_thread::sleep_for(milliseconds(700));
        server_.resume();
        break;
    }
  }

  PostgresServer server_;
  BrokerProcess broker_;
  Inventory inventory_;
};

TEST_P(Soak, TheCountsAreTheGenerators) {
  const PipelineFolder folder(broker_, {{"sink.url", server_.url()},
                                        {"delivery", GetParam().delivery},
                                        {"batch.records", "50"},
                                        {"window.records", "2000"},
                                        {"sink.timeout", "2s"}});
  orders::OrderMix mix = kSomeTrouble;
  if (!GetParam().has_key) {
    folder.remove_key();
    mix.duplicate = 0;  // They could not be told apart.
  }
  auto first = std::make_unique<PipelineProcess>(folder);
  auto second = std::make_unique<PipelineProcess>(folder);
  ASSERT_TRUE(first->start());
  int kills = 0;
  for (std::uint64_t portion = 0; portion < size().portions; ++portion) {
    produce(broker_, "orders", size().orders / size().portions, portion + 1, inventory_, mix);
    if (portion == 1) {
      ASSERT_TRUE(second->start());
    }
    disturb_database(portion);
    if (kills < size().kills && portion % 2 == 0) {
      first->kill();
      ++kills;
      // In this order: the second one goes on meanwhile.
      const auto committed = stored_offsets(broker_, "orders", "orders");
      expect_nothing_skipped(inventory_, outcome(), committed);
      ASSERT_TRUE(first->start());
      // Before it has reached the position of the killed one.
      if (portion % 4 == 2) {
        EXPECT_TRUE(first->terminate().has_value());
        ASSERT_TRUE(first->start());
      }
    }
    if (portion == size().portions / 2) {
      EXPECT_TRUE(second->terminate().has_value());
    }
  }
  const std::size_t wanted = inventory_.count(orders::OrderFate::valid);
  EXPECT_TRUE(eventually(
      [&] { return std::stoull(server_.value("SELECT count(*) FROM orders")) == wanted; },
      seconds{180}))
      << first->log().substr(0, 20'000);
  EXPECT_TRUE(eventually([&] { return first->status()["window"]["records"] == 0; }, seconds{60}));
  EXPECT_EQ(first->terminate(), 0) << first->log().substr(0, 20'000);
  expect_everything_ended(inventory_, outcome());
  std::int64_t committed = 0;
  for (const auto& [partition, next] : stored_offsets(broker_, "orders", "orders"))
    committed += next;
  EXPECT_EQ(committed, static_cast<std::int64_t>(inventory_.entries().size()));
  fmt::print("{} orders, {} kills, {} rows, {} dead letters\n", inventory_.entries().size(), kills,
             wanted,
             inventory_.entries().size() - wanted - inventory_.count(orders::OrderFate::duplicate));
}
INSTANTIATE_TEST_SUITE_P(Deliveries, Soak,
                         ::testing::Values(Delivery{"at_least_once", "at_least_once"},
                                           Delivery{"exactly_once_effect", "exactly_once_effect"},
                                           Delivery{"exactly_once_effect_without_a_key",
                                                    "exactly_once_effect", false}),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace baton::pipeline
