// A valid document must not allocate, once the validator has seen a few like it: memory then does
// not depend on the number of records.

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline/orders/order_generator.h"
#include "pipeline/orders/orders.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/validator.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

// Replaces operator new of the whole test program, only to count.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace baton::schema {
namespace {

TEST(Allocations, AGoodOrderTakesNone) {
  auto schema = Schema::compile(orders::order_schema());
  auto mapping = Mapping::compile(orders::order_mapping());
  ASSERT_TRUE(schema.has_value() && mapping.has_value());
  Validator validator(*schema);
  Mapper mapper(*mapping);
  DocumentRows rows;
  const orders::OrderGenerator generator(1);
  std::vector<std::string> orders;
  for (std::uint64_t i = 0; i < 200; ++i) orders.push_back(generator.generate_valid(i).bytes);

  std::uint64_t taken = 0;
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t before = allocations;
    for (const std::string& order : orders) {
      ASSERT_FALSE(validator.validate(order).has_value());
      ASSERT_TRUE(mapper.map(validator.document(), rows).has_value());
    }
    taken = allocations - before;
  }
  EXPECT_EQ(taken, 0U);
}

}  // namespace
}  // namespace baton::schema
