#include "pipeline/orders/orders.h"

#include <string>
#include <utility>
#include <vector>

namespace baton::orders {
namespace {

using schema::ColumnMapping;
using schema::ColumnType;
using schema::TableMapping;

// A test compares this text with the file, byte for byte.
constexpr std::string_view kSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Order",
  "type": "object",
  "additionalProperties": false,
  "required": ["order_uid", "track_number", "entry", "delivery", "payment", "items", "locale",
               "customer_id", "delivery_service", "shardkey", "sm_id", "date_created",
               "oof_shard"],
  "properties": {
    "order_uid": {"$ref": "#/$defs/text"},
    "track_number": {"$ref": "#/$defs/text"},
    "entry": {"$ref": "#/$defs/text"},
    "delivery": {"$ref": "#/$defs/delivery"},
    "payment": {"$ref": "#/$defs/payment"},
    "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
    "locale": {"$ref": "#/$defs/text"},
    "internal_signature": {"type": "string"},
    "customer_id": {"$ref": "#/$defs/text"},
    "delivery_service": {"$ref": "#/$defs/text"},
    "shardkey": {"$ref": "#/$defs/text"},
    "sm_id": {"$ref": "#/$defs/positive"},
    "date_created": {"type": "string", "format": "date-time"},
    "oof_shard": {"$ref": "#/$defs/text"}
  },
  "$defs": {
    "text": {"type": "string", "minLength": 1},
    "amount": {"type": "integer", "minimum": 0, "maximum": 9007199254740991},
    "positive": {"type": "integer", "minimum": 1, "maximum": 9007199254740991},
    "integer": {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
    "delivery": {
      "type": "object",
      "additionalProperties": false,
      "required": ["name", "phone", "zip", "city", "address", "region", "email"],
      "properties": {
        "name": {"$ref": "#/$defs/text"},
        "phone": {"description": "E.164", "type": "string", "pattern": "^\\+[1-9][0-9]{1,14}$"},
        "zip": {"$ref": "#/$defs/text"},
        "city": {"$ref": "#/$defs/text"},
        "address": {"$ref": "#/$defs/text"},
        "region": {"$ref": "#/$defs/text"},
        "email": {"type": "string", "format": "email"}
      }
    },
    "payment": {
      "type": "object",
      "additionalProperties": false,
      "required": ["transaction", "currency", "provider", "amount", "payment_dt", "bank",
                   "delivery_cost", "goods_total", "custom_fee"],
      "properties": {
        "transaction": {"$ref": "#/$defs/text"},
        "request_id": {"type": "string"},
        "currency": {"$ref": "#/$defs/currency"},
        "provider": {"$ref": "#/$defs/text"},
        "amount": {"$ref": "#/$defs/amount"},
        "payment_dt": {"$ref": "#/$defs/positive"},
        "bank": {"$ref": "#/$defs/text"},
        "delivery_cost": {"$ref": "#/$defs/amount"},
        "goods_total": {"$ref": "#/$defs/positive"},
        "custom_fee": {"$ref": "#/$defs/amount"}
      }
    },
    "item": {
      "type": "object",
      "additionalProperties": false,
      "required": ["chrt_id", "track_number", "price", "rid", "name", "sale", "size",
                   "total_price", "nm_id", "brand", "status"],
      "properties": {
        "chrt_id": {"$ref": "#/$defs/positive"},
        "track_number": {"$ref": "#/$defs/text"},
        "price": {"$ref": "#/$defs/amount"},
        "rid": {"$ref": "#/$defs/text"},
        "name": {"$ref": "#/$defs/text"},
        "sale": {"type": "integer", "minimum": 0, "maximum": 100},
        "size": {"$ref": "#/$defs/text"},
        "total_price": {"$ref": "#/$defs/amount"},
        "nm_id": {"$ref": "#/$defs/positive"},
        "brand": {"$ref": "#/$defs/text"},
        "status": {"$ref": "#/$defs/integer"}
      }
    },
    "currency": {
      "description": "ISO 4217, as of 2026",
      "enum": [
        "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BHD",
        "BIF", "BMD", "BND", "BOB", "BOV", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF",
        "CHE", "CHF", "CHW", "CLF", "CLP", "CNY", "COP", "COU", "CRC", "CUP", "CVE", "CZK", "DJF",
        "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP",
        "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR",
        "ISK", "JMD", "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT",
        "LAK", "LBP", "LKR", "LRD", "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP",
        "MRU", "MUR", "MVR", "MWK", "MXN", "MXV", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR",
        "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR", "PLN", "PYG", "QAR", "RON", "RSD", "RUB",
        "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SOS", "SRD", "SSP", "STN",
        "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH",
        "UGX", "USD", "USN", "UYI", "UYU", "UYW", "UZS", "VED", "VES", "VND", "VUV", "WST", "XAD",
        "XAF", "XAG", "XAU", "XBA", "XBB", "XBC", "XBD", "XCD", "XCG", "XDR", "XOF", "XPD", "XPF",
        "XPT", "XSU", "XUA", "YER", "ZAR", "ZMW", "ZWG"
      ]
    }
  }
}
)json";

ColumnMapping column(std::string name, std::string path, ColumnType type) {
  return {.name = std::move(name), .path = std::move(path), .type = type, .optional = false};
}

/// Columns named like the members of `parent`, all of one type.
void add_columns(TableMapping& table, const std::string& parent,
                 std::initializer_list<std::pair<std::string, ColumnType>> names) {
  for (const auto& [name, type] : names) {
    table.columns.push_back(column(name, parent + name, type));
  }
}

}  // namespace

std::string_view order_schema() { return kSchema; }

schema::RowMapping order_mapping() {
  using enum ColumnType;
  const ColumnMapping order = column("order_uid", "order_uid", text);

  TableMapping orders{.name = "orders", .rows = "", .columns = {order}};
  add_columns(orders, "",
              {{"track_number", text},
               {"entry", text},
               {"locale", text},
               {"internal_signature", text},
               {"customer_id", text},
               {"delivery_service", text},
               {"shardkey", text},
               {"sm_id", integer},
               {"date_created", timestamp},
               {"oof_shard", text}});
  orders.columns[4].optional = true;

  TableMapping deliveries{.name = "deliveries", .rows = "delivery", .columns = {order}};
  add_columns(deliveries, "delivery.",
              {{"name", text},
               {"phone", text},
               {"zip", text},
               {"city", text},
               {"address", text},
               {"region", text},
               {"email", text}});

  TableMapping payments{.name = "payments", .rows = "payment", .columns = {order}};
  add_columns(payments, "payment.",
              {{"transaction", text},
               {"request_id", text},
               {"currency", text},
               {"provider", text},
               {"amount", integer},
               {"payment_dt", integer},
               {"bank", text},
               {"delivery_cost", integer},
               {"goods_total", integer},
               {"custom_fee", integer}});
  payments.columns[2].optional = true;

  TableMapping items{.name = "items", .rows = "items[]", .columns = {order}};
  items.columns.push_back(column("position", "items[].#", integer));
  add_columns(items, "items[].",
              {{"chrt_id", integer},
               {"track_number", text},
               {"price", integer},
               {"rid", text},
               {"name", text},
               {"sale", integer},
               {"size", text},
               {"total_price", integer},
               {"nm_id", integer},
               {"brand", text},
               {"status", integer}});

  return {
      .tables = {std::move(orders), std::move(deliveries), std::move(payments), std::move(items)},
      .key = "order_uid"};
}

}  // namespace baton::orders
