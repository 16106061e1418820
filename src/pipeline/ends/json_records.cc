#include "pipeline/ends/json_records.h"

#include <utility>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/schema/json_document.h"
#include "pipeline/schema/validator.h"

namespace baton::pipeline {
namespace {

class JsonPreparer : public Preparer {
 public:
  JsonPreparer(std::optional<schema::Schema> schema, std::size_t bytes_max) : document_(bytes_max) {
    if (schema.has_value()) validator_.emplace(*std::move(schema), bytes_max);
  }

  std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) override {
    if (validator_.has_value()) {
      if (const auto violation = validator_->validate(record.value)) {
        return std::unexpected(rejection_of(*violation));
      }
    } else if (const Status read = document_.read(record.value); !read.has_value()) {
      return std::unexpected(
          Rejection{.stage = "decode", .code = "json", .text = read.error().text});
    }
    return std::make_unique<AsItIs>();
  }

 private:
  struct AsItIs : Prepared {};

  schema::JsonDocument document_;
  std::optional<schema::Validator> validator_;
};

}  // namespace

std::unique_ptr<Preparer> json_preparer(std::optional<schema::Schema> schema,
                                        std::size_t document_bytes_max) {
  return std::make_unique<JsonPreparer>(std::move(schema), document_bytes_max);
}

}  // namespace baton::pipeline
