#include "pipeline/schema/table_rows.h"

#include "base/assert.h"

namespace baton::schema {

void DocumentRows::clear() {
  text_.clear();
  cells_.clear();
  rows_.clear();
}

void DocumentRows::reserve(std::size_t bytes, std::size_t cells) {
  text_.reserve(bytes);
  cells_.reserve(cells);
}

void DocumentRows::begin_row(std::size_t table) {
  rows_.push_back({.table = static_cast<std::uint32_t>(table),
                   .first = static_cast<std::uint32_t>(cells_.size())});
}

void DocumentRows::add(Cell cell) {
  if (is_null(cell)) {
    cells_.push_back({.at = kNullAt, .size = 0});
    return;
  }
  cells_.push_back({.at = static_cast<std::uint32_t>(text_.size()),
                    .size = static_cast<std::uint32_t>(cell.size())});
  text_.append(cell);
}

Cell DocumentRows::cell(const Row& row, std::size_t column) const {
  const Place& place = cells_[row.first + column];
  if (place.at == kNullAt) return kNullCell;
  // data() of a std::string is never null, so an empty text is not NULL.
  return {text_.data() + place.at, place.size};
}

Cell DocumentRows::key() const {
  if (rows_.empty() || rows_[0].first + key_column_ >= cells_.size()) return kNullCell;
  return cell(rows_[0], key_column_);
}

std::size_t DocumentRows::bytes() const {
  return sizeof *this + text_.capacity() + cells_.capacity() * sizeof(Place) +
         rows_.capacity() * sizeof(Row);
}

TableRows::TableRows(std::span<const std::size_t> columns_of_tables)
    : tables_(columns_of_tables.size()) {
  for (std::size_t i = 0; i < tables_.size(); ++i) tables_[i].columns.resize(columns_of_tables[i]);
}

void TableRows::clear() {
  documents_ = 0;
  for (Table& table : tables_) {
    table.documents.clear();
    for (auto& column : table.columns) column.clear();
  }
}

void TableRows::add(const DocumentRows& document) {
  for (const DocumentRows::Row& row : document.rows()) {
    BATON_ASSERT(row.table < tables_.size());
    Table& table = tables_[row.table];
    table.documents.push_back(documents_);
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      table.columns[column].push_back(document.cell(row, column));
    }
  }
  ++documents_;
}

}  // namespace baton::schema
