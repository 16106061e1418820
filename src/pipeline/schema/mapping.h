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
#include "pipeline/schema/table_rows.h"

namespace baton::schema {

/// The type of a column, and the form of its Cell.
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
  // elements, "items[].price" is a value of the element, "order_uid" a value of its document, and
  // "items[].#" the index of the element, from 0.
  std::string path;
  ColumnType type = ColumnType::text;
  bool optional = false;  // Missing or null becomes NULL; without this, the document is refused.
};

struct TableMapping {
  std::string name;
  // "": one row for each document. "delivery": one if that member exists. "items[]": one for each
  // element.
  std::string rows;
  std::vector<ColumnMapping> columns;
};

/// The configured mapping from a document to rows of tables.
struct RowMapping {
  std::vector<TableMapping> tables;  // The first has one row for each document.
  // The column of the first table that is the idempotency key; empty if there is none.
  std::string key;
};

/// A checked and compiled RowMapping. A handle to an immutable object, like Schema.
class Mapping {
 public:
  /// The error names the table and the column; `wrong_part` is their place in the mapping:
  /// "tables[1].columns.price".
  static Result<Mapping> compile(RowMapping mapping, std::string* wrong_part = nullptr);

  /// Whether documents that match `schema` can have values at the paths, of types that the columns
  /// accept. Anything that the schema does not restrict passes. Errors are like those of compile().
  [[nodiscard]] Status check(const Schema& schema, std::string* wrong_part = nullptr) const;

  [[nodiscard]] const std::vector<TableMapping>& tables() const;
  /// The idempotency key, a column of the first table; empty if there is none.
  [[nodiscard]] const std::string& key() const;
  /// Its index among the first table's columns.
  [[nodiscard]] std::size_t key_column() const;
  /// For TableRows.
  [[nodiscard]] std::span<const std::size_t> columns_of_tables() const;

 private:
  friend class Mapper;
  friend class MappingCheck;
  friend class MappingCompiler;
  struct Plan;
  explicit Mapping(std::shared_ptr<const Plan> plan);

  std::shared_ptr<const Plan> plan_;
};

/// Makes rows of documents, walking each document once. Each thread has its own; once warm it
/// allocates only the memory of the rows.
class Mapper {
 public:
  explicit Mapper(Mapping mapping);
  ~Mapper();
  Mapper(const Mapper&) = delete;
  Mapper& operator=(const Mapper&) = delete;
  Mapper(Mapper&&) noexcept;
  Mapper& operator=(Mapper&&) noexcept;

  /// Fails with malformed, table, column and pointer if the document does not fit the columns: the
  /// rows are empty then. A schema that requires the same excludes this error.
  Status map(const JsonDocument& document, DocumentRows& rows);

  /// The idempotency key of a document that may be invalid otherwise, for the log; nullopt if it
  /// has none.
  [[nodiscard]] std::optional<std::string> key(const JsonDocument& document) const;

 private:
  class Walk;
  Mapping mapping_;
  std::unique_ptr<Walk> walk_;
};

}  // namespace baton::schema
