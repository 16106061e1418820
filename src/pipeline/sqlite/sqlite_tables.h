#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "pipeline/ends/sql_rows.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/sqlite/sqlite_database.h"

namespace baton::pipeline {

/// A row of one of the mapping's tables; of the first, where it came from as well.
std::string sqlite_insert_sql(const schema::Mapping& mapping, std::size_t table);

/// Compares the file with the mapping, and with `marks` their table, too. `apply`: makes the tables
/// that are missing; nothing else is ever changed. Answers what it made, or would make.
Result<TablesCheck> check_sqlite_tables(SqliteDatabase& database, const schema::Mapping& mapping,
                                        bool marks, bool apply);

}  // namespace baton::pipeline
