#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/strong.h>

namespace baton {

/// A table of the checkpoint. Each machine's layer names its own; the store only needs the number.
using Table = Strong<struct TableTag, std::uint8_t>;

/// A table's number and its name in the store.
struct TableName {
  Table table;
  std::string_view name;
};

/// One change of a table: put a row, erase a row, or erase every row in [key, value).
struct RowChange {
  enum class Kind : std::uint8_t { put, erase, erase_range };
  Kind kind;
  Table table;
  std::string key;
  std::string value;  // For erase_range: the end of the range, exclusive.
};

/// Changes that become visible together, applied in order.
class RowBatch {
 public:
  void put(Table table, std::string key, std::string value) {
    add({RowChange::Kind::put, table, std::move(key), std::move(value)});
  }
  void erase(Table table, std::string key) {
    add({RowChange::Kind::erase, table, std::move(key), {}});
  }
  void erase_range(Table table, std::string begin, std::string end) {
    add({RowChange::Kind::erase_range, table, std::move(begin), std::move(end)});
  }

  void add(RowChange change) {
    bytes_ += change.key.size() + change.value.size();
    changes_.push_back(std::move(change));
  }

  [[nodiscard]] const std::vector<RowChange>& changes() const { return changes_; }
  [[nodiscard]] bool empty() const { return changes_.empty(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::vector<RowChange> changes_;
  std::size_t bytes_ = 0;
};

/// A part of a table: keys in [begin, end), at most `rows_max` rows and about `bytes_max` bytes
/// (always at least one row, if there is one).
struct RowRange {
  Table table;
  std::string begin;
  std::string end;
  std::size_t rows_max = 1;
  std::size_t bytes_max = 0;
};

/// A row as read back.
struct Row {
  std::string key;
  std::string value;
};

}  // namespace baton
