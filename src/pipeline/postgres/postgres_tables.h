#pragma once

#include "base/result.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/postgres/postgres_connection.h"
#include "pipeline/schema/mapping.h"

namespace baton::pipeline {

/// Compares the database with the mapping. `apply`: creates missing tables; nothing else is ever
/// changed. Returns what it created or would create.
Result<TablesCheck> check_postgres_tables(PostgresConnection& connection,
                                          const schema::Mapping& mapping, bool marks, bool apply);

}  // namespace baton::pipeline
