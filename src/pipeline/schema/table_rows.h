#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::schema {

/// A value of a column as text; NULL if data() is nullptr. ColumnType says what the text is.
using Cell = std::string_view;
inline constexpr Cell kNullCell{};
inline bool is_null(Cell cell) { return cell.data() == nullptr; }

/// The rows of one document, self-contained: the decoding thread makes them and the writing thread
/// uses them. Filled by a Mapper.
class DocumentRows {
 public:
  struct Row {
    std::uint32_t table;
    std::uint32_t first;  // Index of its first cell.
  };

  void clear();
  void reserve(std::size_t bytes, std::size_t cells);
  void begin_row(std::size_t table);
  void add(Cell cell);

  [[nodiscard]] std::span<const Row> rows() const { return rows_; }
  /// The cell in a column of a row.
  [[nodiscard]] Cell cell(const Row& row, std::size_t column) const;
  /// The idempotency key; NULL until the first row is complete.
  [[nodiscard]] Cell key() const;
  void set_key_column(std::size_t column) { key_column_ = column; }
  /// The approximate memory of the object.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kNullAt = 0xffffffff;
  struct Place {
    std::uint32_t at;
    std::uint32_t size;
  };

  std::string text_;
  std::vector<Place> cells_;  // Row after row.
  std::vector<Row> rows_;
  std::size_t key_column_ = 0;
};

/// Rows of many documents, by table and column: PostgreSQL takes each column as one text[], SQLite
/// row by row. Points into the DocumentRows it was made from, which must outlive it. A reused
/// object stops allocating.
class TableRows {
 public:
  struct Table {
    std::vector<std::uint32_t> documents;    // The document of each row.
    std::vector<std::vector<Cell>> columns;  // Each has the length of `documents`.

    [[nodiscard]] std::size_t rows() const { return documents.size(); }
  };

  /// How many columns each table has.
  explicit TableRows(std::span<const std::size_t> columns_of_tables);

  void clear();
  /// Documents are numbered from 0, in the order in which they are added.
  void add(const DocumentRows& document);

  [[nodiscard]] std::size_t documents() const { return documents_; }
  [[nodiscard]] const Table& table(std::size_t place) const { return tables_[place]; }
  [[nodiscard]] std::size_t tables() const { return tables_.size(); }

 private:
  std::vector<Table> tables_;
  std::uint32_t documents_ = 0;
};

}  // namespace baton::schema
