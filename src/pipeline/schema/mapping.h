#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pipeline/schema/json_document.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/row_batch.h"

namespace baton::schema {

/// What a column holds, and how a Cell writes it.
enum class ColumnType : std::uint8_t {
  text,       // A string; a number or boolean as the document writes it. Never U+0000, which
              // PostgreSQL cannot store.
  integer,    // An integral number of 64 bits: "-12"; 12.0 and 1.2e1 become "12".
  real,       // A number within the range of a double, as the document writes it: no digit is lost.
  boolean,    // "true", "false".
  json,       // Any value but null, as the document writes it.
  timestamp,  // A string that is an RFC 3339 date-time, as the document writes it.
};
std::optional<ColumnType> parse_column_type(std::string_view name);
std::string_view to_string(ColumnType type);

struct ColumnMapping {
  std::string name;
  // From the root of the document, names between dots: "delivery.name". In a table of an array's
  // elements, "items[].price" is the element's own, "order_uid" its document's, and "items[].#" the
  // element's place, from 0.
  std::string path;
  ColumnType type = ColumnType::text;
  bool optional = false;  // Missing or null becomes NULL; otherwise the document is refused.
};

struct TableMapping {
  std::string name;
  // "": one row for each document. "delivery": one if it is there. "items[]": one for each element.
  std::string rows;
  std::vector<ColumnMapping> columns;
};

/// From a document to rows of tables, as it is configured.
struct RowMapping {
  std::vector<TableMapping> tables;  // The first has one row for each document.
  std::string key;  // The column of the first table that is the idempotency key; empty: none is.
};

/// A checked and compiled RowMapping. A handle to something that never changes, like Schema.
class Mapping {
 public:
  /// The error names the table and the column; `wrong_part` is where they stand in the mapping:
  /// "tables[1].columns.price".
  static Result<Mapping> compile(RowMapping mapping, std::string* wrong_part = nullptr);

  /// Whether documents that keep `schema` can have what the paths lead to, in a type that the
  /// columns take. What the schema leaves open passes. Errors as those of compile().
  [[nodiscard]] Status check(const Schema& schema, std::string* wrong_part = nullptr) const;

  [[nodiscard]] const std::vector<TableMapping>& tables() const;
  /// The idempotency key, a column of the first table; empty: there is none.
  [[nodiscard]] const std::string& key() const;
  /// Its place among the first table's columns.
  [[nodiscard]] std::size_t key_column() const;
  /// For RowBatch.
  [[nodiscard]] std::span<const std::size_t> columns_of_tables() const;

 private:
  friend class Mapper;
  friend class MappingCheck;
  friend class MappingCompiler;
  struct Plan;
  explicit Mapping(std::shared_ptr<const Plan> plan);

  std::shared_ptr<const Plan> plan_;
};

/// Makes rows of documents, walking each once more, from one path to the next. Each thread has its
/// own; once warm it allocates nothing but what the rows themselves take.
class Mapper {
 public:
  explicit Mapper(Mapping mapping);
  ~Mapper();
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;
  Mapper(Mapper&&) noexcept;
  Mapper& operator=(Mapper&&) noexcept;

  /// Fails with malformed, table, column and pointer, when the document does not fit the columns:
  /// the rows are empty then. A schema that asks for the same never lets it come to that.
  Status map(const JsonDocument& document, DocumentRows& rows);

  /// The idempotency key of a document that may be invalid otherwise, for the log; nothing if it
  /// has none.
  [[nodiscard]] std::optional<std::string> key(const JsonDocument& document) const;

 private:
  class Walk;
  Mapping mapping_;
  std::unique_ptr<Walk> walk_;
};

}  // namespace baton::schema
