#include "pipeline/postgres/postgres_parameters.h"

#include <algorithm>
#include <charconv>

#include "base/assert.h"

namespace baton::pipeline {
namespace {

// PostgreSQL never changes the numbers of its own types.
constexpr std::uint32_t kTypeInt8 = 20;
constexpr std::uint32_t kTypeText = 25;
constexpr std::uint32_t kNull = 0xffffffff;

void put32(std::string& out, std::uint32_t number) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out.push_back(static_cast<char>((number >> shift) & 0xffU));
  }
}

void put64(std::string& out, std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  put32(out, static_cast<std::uint32_t>(bits >> 32U));
  put32(out, static_cast<std::uint32_t>(bits));
}

void put_head(std::string& out, std::uint32_t type, std::size_t count, bool has_nulls) {
  put32(out, count == 0 ? 0 : 1);
  put32(out, has_nulls ? 1 : 0);
  put32(out, type);
  if (count == 0) return;
  put32(out, static_cast<std::uint32_t>(count));
  put32(out, 1);
}

bool has_nulls(std::span<const schema::Cell> cells) {
  return std::ranges::any_of(cells, [](schema::Cell cell) { return schema::is_null(cell); });
}

}  // namespace

std::string& PostgresParameters::next() {
  if (size_ == values_.size()) values_.emplace_back();
  std::string& value = values_[size_++];
  value.clear();
  return value;
}

void PostgresParameters::add_integer(std::int64_t number) { put64(next(), number); }

void PostgresParameters::add_texts(std::span<const schema::Cell> cells) {
  std::string& out = next();
  put_head(out, kTypeText, cells.size(), has_nulls(cells));
  for (const schema::Cell cell : cells) {
    put32(out, schema::is_null(cell) ? kNull : static_cast<std::uint32_t>(cell.size()));
    out.append(cell);
  }
}

void PostgresParameters::add_integers(std::span<const schema::Cell> cells) {
  std::string& out = next();
  put_head(out, kTypeInt8, cells.size(), has_nulls(cells));
  for (const schema::Cell cell : cells) {
    if (schema::is_null(cell)) {
      put32(out, kNull);
      continue;
    }
    std::int64_t number = 0;
    const auto read = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    BATON_ASSERT(read.ec == std::errc{} && read.ptr == cell.data() + cell.size());
    put32(out, sizeof number);
    put64(out, number);
  }
}

void PostgresParameters::add_numbers(std::span<const std::int64_t> numbers) {
  std::string& out = next();
  put_head(out, kTypeInt8, numbers.size(), false);
  for (const std::int64_t number : numbers) {
    put32(out, sizeof number);
    put64(out, number);
  }
}

}  // namespace baton::pipeline
