#include "pipeline/ends/sql_rows.h"

#include <utility>

namespace baton::pipeline {
namespace {

class SqlPreparer : public Preparer {
 public:
  SqlPreparer(schema::Schema schema, const schema::Mapping& mapping, std::size_t bytes_max)
      : validator_(std::move(schema), bytes_max),
        mapper_(mapping),
        has_key_(!mapping.key().empty()) {}

  std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) override {
    if (const auto violation = validator_.validate(record.value)) {
      return std::unexpected(rejection_of(*violation));
    }
    auto prepared = std::make_unique<SqlPrepared>();
    prepared->has_key = has_key_;
    const Status mapped = mapper_.map(validator_.document(), prepared->rows);
    if (!mapped.has_value()) {
      return std::unexpected(
          Rejection{.stage = "mapping", .code = "column", .text = mapped.error().text});
    }
    return prepared;
  }

 private:
  schema::Validator validator_;
  schema::Mapper mapper_;
  bool has_key_;
};

}  // namespace

Rejection rejection_of(const schema::Violation& violation) {
  const bool broken = violation.kind == schema::Violation::Kind::broken;
  return {.stage = broken ? "decode" : "schema",
          .code = broken ? "json" : violation.keyword,
          .text = to_string(violation)};
}

flow::SinkError row_not_taken() {
  return {.error_class = flow::ErrorClass::unknown,
          .text = "the row was not taken, and its key is not there: a trigger?"};
}

std::string sql_name(std::string_view name) {
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::unique_ptr<Preparer> sql_preparer(schema::Schema schema, const schema::Mapping& mapping,
                                       std::size_t document_bytes_max) {
  return std::make_unique<SqlPreparer>(std::move(schema), mapping, document_bytes_max);
}

}  // namespace baton::pipeline
