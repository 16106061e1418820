#pragma once

#include <string_view>

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// What an error means, by its SQLSTATE. None at all means that the connection is gone: libpq gives
/// none after a killed backend, whatever it says of the connection.
flow::ErrorClass class_of_postgres(std::string_view sqlstate);
/// A statement that took too long may do with half the records.
bool is_statement_timeout(std::string_view sqlstate);

}  // namespace baton::pipeline
