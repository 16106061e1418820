#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "pipeline/orders/order_text.h"

namespace baton::orders {

/// The expected fate of a generated record.
enum class OrderFate : std::uint8_t { valid, invalid, broken, duplicate };
std::string_view to_string(OrderFate fate);

/// How many records of a thousand are not valid, by kind.
struct OrderMix {
  std::uint32_t invalid = 20;
  std::uint32_t broken = 10;
  std::uint32_t duplicate = 30;
};

/// One way to be invalid: exactly one rule of the schema is violated.
struct OrderFlaw {
  std::string name;     // "payment.amount: negative"
  std::string pointer;  // Expected in the violation; for items, of item 0.
  std::string keyword;
};

struct GeneratedOrder {
  std::uint64_t index = 0;
  std::string order_uid;  // Unique in a run, except in duplicates; set even if the record lacks it.
  std::string bytes;
  OrderFate fate = OrderFate::valid;
  std::string rule;     // invalid: OrderFlaw::name; broken: how.
  std::string pointer;  // invalid: the pointer of the OrderFlaw.
  std::string keyword;
  std::optional<std::uint64_t> duplicate_of;  // The index of an earlier valid record.
};

/// Orders from a seed: valid ones of about 1.2 kB with 1 to 5 items, invalid ones that violate one
/// rule, broken ones that are not JSON, and duplicates. Record `index` depends only on the seed,
/// the mix and its index: a reader may begin anywhere, and a test can generate a record again.
class OrderGenerator {
 public:
  explicit OrderGenerator(std::uint64_t seed, OrderMix mix = {});

  /// The records 0, 1, 2, ...
  GeneratedOrder next() { return generate(next_++); }
  [[nodiscard]] GeneratedOrder generate(std::uint64_t index) const;

  /// Every way to be invalid or broken, for tests that need each.
  [[nodiscard]] std::span<const OrderFlaw> flaws() const { return flaws_; }
  [[nodiscard]] static std::span<const std::string_view> breaks();
  [[nodiscard]] GeneratedOrder generate_valid(std::uint64_t index) const;
  [[nodiscard]] GeneratedOrder generate_invalid(std::uint64_t index, std::size_t flaw) const;
  [[nodiscard]] GeneratedOrder generate_broken(std::uint64_t index, std::size_t way) const;

 private:
  [[nodiscard]] Random random_of(std::uint64_t index) const;
  [[nodiscard]] OrderFate drawn_fate(Random& random) const;
  [[nodiscard]] std::optional<std::uint64_t> earlier_valid(std::uint64_t index,
                                                           Random& random) const;
  [[nodiscard]] std::string order_uid_of(std::uint64_t index) const;

  std::uint64_t seed_;
  OrderMix mix_;
  Random root_;
  std::uint64_t next_ = 0;
  std::vector<OrderFlaw> flaws_;
  std::vector<FieldChange> changes_;  // The change that makes each flaw.
};

}  // namespace baton::orders
