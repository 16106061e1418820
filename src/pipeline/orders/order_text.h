#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

/// The order model for the generator: its fields, and how an order is written.
namespace baton::orders {

enum class OrderObject : std::uint8_t { order, delivery, payment, item };

enum class FieldKind : std::uint8_t {
  text,      // Not empty.
  optional,  // A text that may be missing or empty.
  phone,
  email,
  currency,
  timestamp,
  amount,    // 0 or more.
  positive,  // 1 or more.
  percent,   // 0 to 100.
  integer,
  object,
  list,  // The items.
};

struct OrderField {
  std::string_view name;
  FieldKind kind;
};

/// The fields of an object, in the order in which they are written.
std::span<const OrderField> fields_of(OrderObject object);
/// "delivery.", "items[]." and so on: the path before the name of a field.
std::string_view path_of(OrderObject object);
/// "/delivery", "/items/0" and so on.
std::string_view pointer_of(OrderObject object);

inline constexpr std::string_view kUnknownField = "no_such_field";
inline constexpr std::string_view kWholeOrder = "*";

/// A change to one field of an order; among items, of the first one.
struct FieldChange {
  OrderObject object = OrderObject::order;
  std::string_view field;  // Empty: adds kUnknownField. kWholeOrder: replaces the document.
  std::string_view json;   // Replaces the value; empty: the member is left out.
};

/// Writes the order `order_uid`. `random` decides everything else; `change` may be null.
std::string write_order(std::string_view order_uid, Random& random, const FieldChange* change);

}  // namespace baton::orders
