#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/table_rows.h"
#include "pipeline/schema/validator.h"

namespace baton::pipeline {

/// A record for a database: the rows of all its tables.
struct SqlPrepared : Prepared {
  schema::DocumentRows rows;
  bool has_key = false;

  [[nodiscard]] std::string_view key() const override {
    return has_key ? rows.key() : std::string_view{};
  }
};

inline const schema::DocumentRows& rows_of(const Item& item) {
  return static_cast<const SqlPrepared&>(*item.prepared).rows;
}

/// Besides the mapped columns, the first table says where its row came from. A record that finds
/// its own origin there is a replay; a record that finds another origin is a duplicate.
inline constexpr const char* kSourceColumn = "_source";
inline constexpr const char* kPartitionColumn = "_partition";
inline constexpr const char* kOffsetColumn = "_offset";

/// The marks of exactly_once_effect.
inline constexpr const char* kMarksTable = "baton_marks";

/// The result of checking a database's tables.
struct TablesCheck {
  Findings missing{};      // Tables that were created, or would be.
  bool has_marks = false;  // The table of marks existed before.
};

/// The reason that a dead letter gives for an invalid document.
Rejection rejection_of(const schema::Violation& violation);

/// The name in SQL quotes.
std::string sql_name(std::string_view name);

/// The error for a row that was not inserted though no row has its key. The row that had the key
/// may be gone, and then the next attempt succeeds; otherwise the database drops rows silently.
flow::SinkError row_not_taken();

/// Validates documents against the schema and converts them to rows.
std::unique_ptr<Preparer> sql_preparer(schema::Schema schema, const schema::Mapping& mapping,
                                       std::size_t document_bytes_max);

}  // namespace baton::pipeline
