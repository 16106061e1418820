#include "sink/sqlite_sink.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <latch>
#include <numeric>
#include <thread>

#include "schema/order_generator.h"
#include "schema/orders.h"

namespace baton::pipeline {
namespace {

// Any number of processes may run one config, and all of them may be the first.
TEST(SqliteSink, WhoeverIsFirstMakesTheTables) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "whoever_is_first.db";
  constexpr std::size_t kMany = 6;
  for (int round = 0; round < 10; ++round) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
    std::array<std::size_t, kMany> made{};
    std::latch all_here(kMany);
    {
      std::vector<std::jthread> processes;
      for (std::size_t& count : made) {
        processes.emplace_back([&] {
          SqliteSink sink({.path = path, .exactly_once = true},
                          schema::Schema::compile(schema::order_schema()).value(),
                          schema::Mapping::compile(schema::order_mapping()).value());
          all_here.arrive_and_wait();
          const auto done = sink.check(true);
          EXPECT_TRUE(done.has_value()) << done.error().text;
          if (!done.has_value()) return;
          for (const std::string& line : *done) count += line.starts_with("made table") ? 1 : 0;
        });
      }
    }
    EXPECT_EQ(std::accumulate(made.begin(), made.end(), std::size_t{0}), 4U);
  }
}

TEST(SqliteSink, ADocumentIsKnownByItsKey) {
  const schema::OrderGenerator generator(7);
  const Record record{.value = generator.generate_valid(1).bytes};
  const auto key_with = [&](const schema::RowMapping& mapping) {
    SqliteSink sink({}, schema::Schema::compile(schema::order_schema()).value(),
                    schema::Mapping::compile(mapping).value());
    const auto prepared = sink.preparer()->prepare(record);
    return std::string(prepared.value()->key());
  };
  schema::RowMapping mapping = schema::order_mapping();
  EXPECT_EQ(key_with(mapping), generator.generate_valid(1).order_uid);
  mapping.key.clear();
  EXPECT_EQ(key_with(mapping), "");
}

}  // namespace
}  // namespace baton::pipeline
