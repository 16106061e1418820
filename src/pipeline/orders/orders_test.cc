#include "pipeline/orders/orders.h"

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/hash.h"
#include "pipeline/orders/order_generator.h"
#include "pipeline/schema/validator.h"

namespace baton::orders {
namespace {

using schema::DocumentRows;
using schema::is_null;
using schema::Mapper;
using schema::Mapping;
using schema::Schema;
using schema::Validator;
using schema::Violation;

Validator order_validator() {
  auto schema = Schema::compile(order_schema());
  EXPECT_TRUE(schema.has_value()) << schema.error().text;
  return Validator(*schema);
}

Mapper order_mapper() {
  auto mapping = Mapping::compile(order_mapping());
  EXPECT_TRUE(mapping.has_value()) << mapping.error().text;
  return Mapper(*mapping);
}

std::string say(const std::optional<Violation>& violation) {
  return violation.has_value() ? to_string(*violation) : "valid";
}

TEST(Orders, TheShippedSchemaIsTheOneCompiledIn) {
  std::ifstream file(std::string(BATON_EXAMPLES) + "/pipeline/order.schema.json", std::ios::binary);
  const std::string shipped{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(shipped, order_schema());
}

// The order that the model is based on.
TEST(Orders, TheWellKnownOrderIsValidAndBecomesItsRows) {
  constexpr std::string_view kOrder = R"({
    "order_uid": "b563feb7b2b84b6test", "track_number": "WBILMTESTTRACK", "entry": "WBIL",
    "delivery": {"name": "Test Testov", "phone": "+9720000000", "zip": "2639809",
      "city": "Kiryat Mozkin", "address": "Ploshad Mira 15", "region": "Kraiot",
      "email": "test@gmail.com"},
    "payment": {"transaction": "b563feb7b2b84b6test", "request_id": "", "currency": "USD",
      "provider": "wbpay", "amount": 1817, "payment_dt": 1637907727, "bank": "alpha",
      "delivery_cost": 1500, "goods_total": 317, "custom_fee": 0},
    "items": [{"chrt_id": 9934930, "track_number": "WBILMTESTTRACK", "price": 453,
      "rid": "ab4219087a764ae0btest", "name": "Mascaras", "sale": 30, "size": "0",
      "total_price": 317, "nm_id": 2389212, "brand": "Vivienne Sabo", "status": 202}],
    "locale": "en", "internal_signature": "", "customer_id": "test", "delivery_service": "meest",
    "shardkey": "9", "sm_id": 99, "date_created": "2021-11-26T06:22:19Z", "oof_shard": "1"})";
  Validator validator = order_validator();
  ASSERT_EQ(say(validator.validate(kOrder)), "valid");
  Mapper mapper = order_mapper();
  DocumentRows rows;
  ASSERT_TRUE(mapper.map(validator.document(), rows).has_value());
  EXPECT_EQ(rows.key(), "b563feb7b2b84b6test");
  ASSERT_EQ(rows.rows().size(), 4U);
  EXPECT_EQ(rows.cell(rows.rows()[0], 9), "2021-11-26T06:22:19Z");
  EXPECT_EQ(rows.cell(rows.rows()[1], 2), "+9720000000");
  EXPECT_EQ(rows.cell(rows.rows()[2], 2), "");  // Empty is not NULL.
  EXPECT_FALSE(is_null(rows.cell(rows.rows()[2], 2)));
  EXPECT_EQ(rows.cell(rows.rows()[3], 1), "0");
  EXPECT_EQ(rows.cell(rows.rows()[3], 12), "202");
}

RC_GTEST_PROP(Orders, ValidOnesAreValidAndFitTheTables, (std::uint64_t seed, std::uint32_t index)) {
  const GeneratedOrder order = OrderGenerator(seed).generate_valid(index);
  static Validator validator = order_validator();
  static Mapper mapper = order_mapper();
  RC_ASSERT(say(validator.validate(order.bytes)) == "valid");
  DocumentRows rows;
  RC_ASSERT(mapper.map(validator.document(), rows).has_value());
  RC_ASSERT(rows.key() == order.order_uid);
  RC_ASSERT(rows.rows().size() >= 4U && rows.rows().size() <= 8U);
}

// For each rule: exactly that rule must object, at the expected place.
TEST(Orders, EveryFlawIsFoundByItsRule) {
  const OrderGenerator generator(7);
  Validator validator = order_validator();
  std::set<std::string> names;
  std::map<std::string, int> keywords;
  for (std::size_t flaw = 0; flaw < generator.flaws().size(); ++flaw) {
    for (std::uint64_t index = 0; index < 3; ++index) {
      const GeneratedOrder order = generator.generate_invalid(index, flaw);
      const auto violation = validator.validate(order.bytes);
      ASSERT_TRUE(violation.has_value()) << order.rule << " " << order.bytes;
      EXPECT_EQ(violation->kind, Violation::Kind::invalid) << order.rule;
      EXPECT_EQ(violation->pointer, order.pointer) << order.rule << ": " << say(violation);
      EXPECT_EQ(violation->keyword, order.keyword) << order.rule << ": " << say(violation);
    }
    EXPECT_TRUE(names.insert(generator.flaws()[flaw].name).second);
    ++keywords[generator.flaws()[flaw].keyword];
  }
  // Every keyword that the schema uses.
  for (const auto* keyword : {"type", "required", "additionalProperties", "minLength", "minimum",
                              "maximum", "pattern", "format", "enum", "minItems"}) {
    EXPECT_GT(keywords[keyword], 0) << keyword;
  }
  fmt::print("{} ways to be invalid\n", names.size());
}

TEST(Orders, EveryBreakIsBroken) {
  const OrderGenerator generator(7);
  Validator validator = order_validator();
  for (std::size_t way = 0; way < OrderGenerator::breaks().size(); ++way) {
    for (std::uint64_t index = 0; index < 50; ++index) {
      const GeneratedOrder order = generator.generate_broken(index, way);
      const auto violation = validator.validate(order.bytes);
      ASSERT_TRUE(violation.has_value()) << order.rule << " " << order.bytes;
      EXPECT_EQ(violation->kind, Violation::Kind::broken) << order.rule << ": " << say(violation);
    }
  }
}

struct Seen {
  std::map<OrderFate, int> fates;
  std::map<std::string, std::uint64_t> first;  // The first record of each order_uid.
  std::size_t bytes = 0;
  std::size_t items = 0;
};

// What pipeline tests rely on: each record has the fate that the generator announces.
TEST(Orders, TheRunIsAsItSaysItIs) {
  constexpr int kRecords = 20'000;
  OrderGenerator generator(11);
  Validator validator = order_validator();
  Mapper mapper = order_mapper();
  Seen seen;
  for (int i = 0; i < kRecords; ++i) {
    const GeneratedOrder order = generator.next();
    ASSERT_EQ(order.index, static_cast<std::uint64_t>(i));
    ++seen.fates[order.fate];
    const auto violation = validator.validate(order.bytes);
    const auto [known, is_new] = seen.first.try_emplace(order.order_uid, order.index);
    ASSERT_EQ(is_new, order.fate != OrderFate::duplicate);
    if (order.fate == OrderFate::duplicate) {
      ASSERT_TRUE(order.duplicate_of.has_value() && *order.duplicate_of < order.index);
      ASSERT_EQ(known->second, *order.duplicate_of);
      ASSERT_EQ(order.bytes, generator.generate(*order.duplicate_of).bytes);
    }
    if (order.fate == OrderFate::invalid || order.fate == OrderFate::broken) {
      ASSERT_TRUE(violation.has_value() && !order.rule.empty());
      ASSERT_EQ(violation->kind == Violation::Kind::broken, order.fate == OrderFate::broken);
      continue;
    }
    ASSERT_FALSE(violation.has_value()) << say(violation);
    DocumentRows rows;
    ASSERT_TRUE(mapper.map(validator.document(), rows).has_value());
    seen.bytes += order.bytes.size();
    seen.items += rows.rows().size() - 3;
  }
  const auto share = [&](OrderFate fate) { return 1000.0 * seen.fates[fate] / kRecords; };
  EXPECT_NEAR(share(OrderFate::invalid), 20, 5);
  EXPECT_NEAR(share(OrderFate::broken), 10, 5);
  EXPECT_NEAR(share(OrderFate::duplicate), 30, 5);
  const double good = seen.fates[OrderFate::valid] + seen.fates[OrderFate::duplicate];
  EXPECT_NEAR(static_cast<double>(seen.bytes) / good, 1200, 100);
  EXPECT_NEAR(static_cast<double>(seen.items) / good, 3, 0.1);
}

TEST(Orders, TheSameSeedGivesTheSameOrders) {
  OrderGenerator one(3);
  OrderGenerator other(3);
  const OrderGenerator another(4);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const GeneratedOrder order = one.next();
    EXPECT_EQ(order.bytes, other.next().bytes);
    EXPECT_EQ(order.bytes, other.generate(i).bytes);  // In any order.
    EXPECT_NE(order.order_uid, another.generate(i).order_uid);
  }
}

// Golden: other tests, and numbers in reports, rely on these orders staying the same.
TEST(Orders, TheOrdersOfSeedOneNeverChange) {
  OrderGenerator generator(1);
  std::string all;
  for (int i = 0; i < 1000; ++i) all += generator.next().bytes;
  EXPECT_EQ(generator.generate_valid(0).order_uid, "52ead7e36ea7fea80001");
  EXPECT_EQ(hash64(all), 3281084859182490279U);
}

TEST(Orders, TheMixIsTheCallers) {
  const OrderGenerator clean(5, {.invalid = 0, .broken = 0, .duplicate = 0});
  const OrderGenerator broken(5, {.invalid = 0, .broken = 1000, .duplicate = 0});
  const OrderGenerator duplicates(5, {.invalid = 0, .broken = 0, .duplicate = 1000});
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(clean.generate(i).fate, OrderFate::valid);
    EXPECT_EQ(broken.generate(i).fate, OrderFate::broken);
    // There is nothing to repeat, so they are valid.
    EXPECT_EQ(duplicates.generate(i).fate, OrderFate::valid);
  }
}

}  // namespace
}  // namespace baton::orders
