#pragma once

#include <memory>
#include <optional>

#include "pipeline/engine/sink.h"
#include "pipeline/schema/json_schema.h"

namespace baton::pipeline {

/// For sinks that take records unchanged: checks that a record is JSON and matches the schema, if
/// there is one.
std::unique_ptr<Preparer> json_preparer(std::optional<schema::Schema> schema,
                                        std::size_t document_bytes_max);

}  // namespace baton::pipeline
