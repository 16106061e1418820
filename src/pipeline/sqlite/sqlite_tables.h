#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/sqlite/sqlite_database.h"

namespace baton::pipeline {

/// Inserts a row of one of the mapping's tables; into the first table, with the row's origin.
std::string sqlite_insert_sql(const schema::Mapping& mapping, std::size_t table);

/// Compares the file with the mapping, and with `marks` also the table of marks. `apply`: creates
/// missing tables; nothing else is ever changed. Returns what it created or would create.
Result<TablesCheck> check_sqlite_tables(SqliteDatabase& database, const schema::Mapping& mapping,
                                        bool marks, bool apply);

}  // namespace baton::pipeline
