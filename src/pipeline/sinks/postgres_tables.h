#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/sinks/postgres_connection.h"

namespace baton::pipeline {

/// Compares the database with the mapping. `apply`: makes the tables that are missing; nothing else
/// is ever changed. Answers what it did, or would do.
Result<std::vector<std::string>> check_postgres_tables(PostgresConnection& connection,
                                                       const schema::Mapping& mapping, bool marks,
                                                       bool apply);

}  // namespace baton::pipeline
