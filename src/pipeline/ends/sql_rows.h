#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/row_batch.h"
#include "pipeline/schema/validator.h"

namespace baton::pipeline {

/// What a database gets of a record: the rows of all its tables.
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

/// Beside the mapped columns, the first table says where its row came from: a record that finds
/// itself is a replay, one that finds another is a duplicate.
inline constexpr const char* kSourceColumn = "_source";
inline constexpr const char* kPartitionColumn = "_partition";
inline constexpr const char* kOffsetColumn = "_offset";

/// The marks of exactly_once_effect.
inline constexpr const char* kMarksTable = "baton_marks";

/// What a database's tables are like.
struct TablesCheck {
  Findings missing{};      // Tables that were made, or would be.
  bool has_marks = false;  // The table of marks was there before.
};

/// What a dead letter says of a document that is not as it should be.
Rejection rejection_of(const schema::Violation& violation);

/// As SQL quotes a name.
std::string sql_name(std::string_view name);

/// A row did not go in, and nobody holds its key. Whoever held it may be gone by now, and then the
/// next attempt succeeds; otherwise the database throws rows away, and in silence.
flow::SinkError row_not_taken();

/// Validates documents against the schema, and makes rows of them.
std::unique_ptr<Preparer> sql_preparer(schema::Schema schema, const schema::Mapping& mapping,
                                       std::size_t document_bytes_max);

}  // namespace baton::pipeline
