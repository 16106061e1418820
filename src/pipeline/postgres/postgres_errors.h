#pragma once

#include <string_view>

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// The class of an error, by its SQLSTATE. An empty SQLSTATE means that the connection is lost:
/// libpq has none after a killed backend, even if it reports the connection as good.
flow::ErrorClass class_of_postgres(std::string_view sqlstate);
/// Whether a statement took too long, which half the records may avoid.
bool is_statement_timeout(std::string_view sqlstate);

}  // namespace baton::pipeline
