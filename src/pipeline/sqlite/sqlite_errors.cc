#include "pipeline/sqlite/sqlite_errors.h"

namespace baton::pipeline {

using flow::ErrorClass;

namespace {

// SQLite's primary result codes, by their published numbers.
constexpr int kPrimaryMask = 0xff;
constexpr int kSqliteUnique = 2067;
constexpr int kSqlitePrimaryKey = 1555;
constexpr int kSqliteRowId = 2579;

}  // namespace

ErrorClass class_of_sqlite(int code) {
  if (code == kSqliteUnique || code == kSqlitePrimaryKey || code == kSqliteRowId) {
    return ErrorClass::duplicate;
  }
  switch (code & kPrimaryMask) {
    case 5:   // BUSY
    case 6:   // LOCKED
    case 15:  // PROTOCOL: others got the locks of the WAL first.
    case 17:  // SCHEMA: the statement is prepared again.
      return ErrorClass::retry;
    case 7:   // NOMEM
    case 8:   // READONLY
    case 10:  // IOERR
    case 13:  // FULL
    case 14:  // CANTOPEN
      return ErrorClass::outage;
    case 1:   // ERROR: no such table or column.
    case 3:   // PERM
    case 11:  // CORRUPT
    case 23:  // AUTH
    case 26:  // NOTADB
      return ErrorClass::config;
    case 18:  // TOOBIG
    case 19:  // CONSTRAINT
    case 20:  // MISMATCH
    case 25:  // RANGE
      return ErrorClass::poison;
    default: return ErrorClass::unknown;
  }
}

}  // namespace baton::pipeline
