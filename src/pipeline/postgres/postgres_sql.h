#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schema/mapping.h"

/// The SQL of a mapping, as text.
namespace baton::pipeline {

/// A column that a table should have.
struct PostgresColumn {
  std::string name{};
  std::string type{};                    // The type of a new column.
  std::vector<std::string> also_good{};  // Other types that an existing column may have.
  bool optional = false;
};

/// The columns of a table of the mapping; the first table also has columns for the origin of a row.
std::vector<PostgresColumn> postgres_columns(const schema::Mapping& mapping, std::size_t table);
/// The columns of baton_marks.
std::vector<PostgresColumn> postgres_marks_columns();

/// CREATE TABLE, and its indexes.
std::vector<std::string> postgres_create_sql(const schema::Mapping& mapping, std::size_t table);
std::string postgres_create_marks_sql();

/// Whether a column is sent as bigint[] or as text[].
bool travels_as_integers(schema::ColumnType type);

/// One statement for a batch: inserts rows of the first table whose key is new, and the rows of the
/// other tables only for these documents. Its parameters:
///
///   the source; the partitions and offsets of the documents; the first table's columns;
///   of each other table the documents of its rows, from 1, and its columns;
///   `marked`: the pipeline; of each mark that moves: partition, lane, epoch, expected, next, done.
///
/// Returns, with a key, an array of which documents were new: '{t,f,t}'. `marked`: fails with
/// kMarkMissed, before anything is inserted, unless all marks are where they are expected; with a
/// key also with kRowNotTaken, if a row was not inserted and no row has its key, because the marks
/// would say that its document is finished.
std::string postgres_batch_sql(const schema::Mapping& mapping, bool marked);
inline constexpr std::string_view kMarkMissed = "baton_mark_missed";
inline constexpr std::string_view kRowNotTaken = "baton_row_not_taken";

/// Which rows have the keys $1: index of the key, from 1, source, partition, offset.
std::string postgres_holders_sql(const schema::Mapping& mapping);

}  // namespace baton::pipeline
