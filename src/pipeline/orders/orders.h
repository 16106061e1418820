#pragma once

#include <string_view>

#include "pipeline/schema/mapping.h"

/// The shipped example: orders. docs/pipeline-schema.md describes them.
namespace baton::orders {

/// The text of examples/pipeline/order.schema.json.
std::string_view order_schema();

/// Tables orders (order_uid is the idempotency key), deliveries, payments and items.
schema::RowMapping order_mapping();

}  // namespace baton::orders
