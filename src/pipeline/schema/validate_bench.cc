// Measures a generated order, on one thread: finding its tokens, reading it, validating it, making
// rows of it; compared with reading it by simdjson's own front ends. Orders of 1.2 kB, all valid,
// one after another, from a set that fits the second level cache. Rates are in orders and bytes per
// second.

#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <simdjson.h>

#include "base/assert.h"
#include "pipeline/orders/order_generator.h"
#include "pipeline/orders/orders.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/validator.h"

namespace baton::schema {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kOrders = 500;

const std::vector<std::string>& orders() {
  static const std::vector<std::string> kAll = [] {
    std::vector<std::string> all;
    const orders::OrderGenerator generator(kSeed);
    for (std::size_t i = 0; i < kOrders; ++i) {
      all.push_back(generator.generate_valid(i).bytes);
      // simdjson's front ends read past the end.
      all.back().reserve(all.back().size() + simdjson::SIMDJSON_PADDING);
    }
    return all;
  }();
  return kAll;
}

template <class Work>
void for_each_order(benchmark::State& state, Work work) {
  std::size_t at = 0;
  std::size_t bytes = 0;
  for (auto iteration : state) {
    (void)iteration;
    const std::string& order = orders()[at];
    at = (at + 1) % kOrders;
    bytes += order.size();
    work(order);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

Schema schema() {
  auto compiled = Schema::compile(orders::order_schema());
  BATON_ASSERT(compiled.has_value());
  return *compiled;
}

Mapping mapping() {
  auto compiled = Mapping::compile(orders::order_mapping());
  BATON_ASSERT(compiled.has_value());
  return *compiled;
}

void simdjson_dom(benchmark::State& state) {
  simdjson::dom::parser parser;
  for_each_order(state, [&](const std::string& order) {
    auto parsed = parser.parse(order.data(), order.size(), false);
    BATON_ASSERT(parsed.error() == simdjson::SUCCESS);
  });
}
BENCHMARK(simdjson_dom);

// Every key and string unescaped, every number as written: the same result that a validator needs.
void simdjson_ondemand(benchmark::State& state) {
  namespace ondemand = simdjson::ondemand;
  ondemand::parser parser;
  std::size_t sum = 0;
  const auto visit = [&](auto&& self, ondemand::value value) -> void {
    switch (value.type()) {
      case ondemand::json_type::object:
        for (auto field : value.get_object()) {
          sum += std::string_view(field.unescaped_key()).size();
          self(self, field.value());
        }
        break;
      case ondemand::json_type::array:
        for (auto element : value.get_array()) self(self, element.value());
        break;
      case ondemand::json_type::string: sum += std::string_view(value.get_string()).size(); break;
      default: sum += value.raw_json_token().size();
    }
  };
  for_each_order(state, [&](const std::string& order) {
    auto document = parser.iterate(order.data(), order.size(), order.capacity());
    visit(visit, document.get_value());
  });
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(simdjson_ondemand);

void read(benchmark::State& state) {
  JsonDocument document;
  for_each_order(state, [&](const std::string& order) {
    const bool good = document.read(order).has_value();
    BATON_ASSERT(good);
  });
}
BENCHMARK(read);

void read_and_validate(benchmark::State& state) {
  Validator validator(schema());
  for_each_order(state, [&](const std::string& order) {
    const bool good = !validator.validate(order).has_value();
    BATON_ASSERT(good);
  });
}
BENCHMARK(read_and_validate);

void read_validate_and_map(benchmark::State& state) {
  Validator validator(schema());
  Mapper mapper(mapping());
  DocumentRows rows;
  for_each_order(state, [&](const std::string& order) {
    const bool good = !validator.validate(order).has_value() &&
                      mapper.map(validator.document(), rows).has_value();
    BATON_ASSERT(good);
  });
}
BENCHMARK(read_validate_and_map);

// With new rows for each order, as in a pipeline, collected in batches.
void batches_of_500(benchmark::State& state) {
  Validator validator(schema());
  const Mapping plan = mapping();
  Mapper mapper(plan);
  TableRows batch(plan.columns_of_tables());
  std::vector<DocumentRows> documents;
  for_each_order(state, [&](const std::string& order) {
    const bool good = !validator.validate(order).has_value() &&
                      mapper.map(validator.document(), documents.emplace_back()).has_value();
    BATON_ASSERT(good);
    if (documents.size() < kOrders) return;
    batch.clear();
    for (const DocumentRows& rows : documents) batch.add(rows);
    benchmark::DoNotOptimize(batch.table(0).rows());
    documents.clear();
  });
}
BENCHMARK(batches_of_500);

void reject_an_order(benchmark::State& state) {
  Validator validator(schema());
  const orders::OrderGenerator generator(kSeed);
  const std::size_t flaws = generator.flaws().size();
  std::vector<std::string> invalid;
  for (std::size_t i = 0; i < flaws; ++i) {
    invalid.push_back(generator.generate_invalid(i, i).bytes);
  }
  std::size_t at = 0;
  for (auto iteration : state) {
    (void)iteration;
    benchmark::DoNotOptimize(validator.validate(invalid[at]));
    at = (at + 1) % flaws;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(reject_an_order);

void generate_an_order(benchmark::State& state) {
  orders::OrderGenerator generator(kSeed);
  std::size_t bytes = 0;
  for (auto iteration : state) {
    (void)iteration;
    bytes += generator.next().bytes.size();
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(generate_an_order);

}  // namespace
}  // namespace baton::schema
