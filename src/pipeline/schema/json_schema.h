#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::schema {

struct SchemaNodes;

/// A compiled JSON Schema: the subset of draft 2020-12 that docs/pipeline-schema.md lists. A handle
/// to an immutable object: copies are cheap, and any number of threads may use them.
class Schema {
 public:
  /// The error names the JSON pointer and the keyword. An unsupported keyword is an error, so that
  /// no rule of a schema is silently ignored.
  static Result<Schema> compile(std::string_view text);

  [[nodiscard]] const SchemaNodes& nodes() const { return *nodes_; }

 private:
  explicit Schema(std::shared_ptr<const SchemaNodes> nodes) : nodes_(std::move(nodes)) {}

  std::shared_ptr<const SchemaNodes> nodes_;
};

}  // namespace baton::schema
