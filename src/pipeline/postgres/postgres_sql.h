#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schema/mapping.h"

/// The SQL of a mapping, as text.
namespace baton::pipeline {

/// A column as a table should have it.
struct PostgresColumn {
  std::string name{};
  std::string type{};                    // What it is made with.
  std::vector<std::string> also_good{};  // What it may be as well, where it is there already.
  bool optional = false;
};

/// Of a table of the mapping; of the first one, with where a row came from.
std::vector<PostgresColumn> postgres_columns(const schema::Mapping& mapping, std::size_t table);
/// Of baton_marks.
std::vector<PostgresColumn> postgres_marks_columns();

/// CREATE TABLE, and what belongs to it.
std::vector<std::string> postgres_create_sql(const schema::Mapping& mapping, std::size_t table);
std::string postgres_create_marks_sql();

/// How a column travels: as bigint[] or as text[].
bool travels_as_integers(schema::ColumnType type);

/// One statement for a batch: rows of the first table whose key is new, and the rows of the other
/// tables of those documents alone. Its parameters:
///
///   the source; the partitions and offsets of the documents; the first table's columns;
///   of each other table the documents of its rows, from 1, and its columns;
///   `marked`: the pipeline; of each mark that moves: partition, lane, epoch, expected, next, done.
///
/// Answers, with a key, an array of which documents were new: '{t,f,t}'. `marked`: fails, saying
/// kMarkMissed, before anything is inserted, unless all marks are where they are expected; with a
/// key also, saying kRowNotTaken, if a row did not go in and nobody holds its key: the marks would
/// say that it has been seen to its end.
std::string postgres_batch_sql(const schema::Mapping& mapping, bool marked);
inline constexpr std::string_view kMarkMissed = "baton_mark_missed";
inline constexpr std::string_view kRowNotTaken = "baton_row_not_taken";

/// Who holds the keys $1: number of the key, from 1, source, partition, offset.
std::string postgres_holders_sql(const schema::Mapping& mapping);

}  // namespace baton::pipeline
