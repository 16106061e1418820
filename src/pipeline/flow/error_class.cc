#include "pipeline/flow/error_class.h"

#include <algorithm>
#include <array>
#include <utility>

namespace baton::flow {
namespace {

struct Rule {
  std::string_view prefix;
  ErrorClass error_class;
};

// The first that fits counts.
constexpr std::array kSqlstates = std::to_array<Rule>({
    {"40001", ErrorClass::retry},  // Serialization failure.
    {"40P01", ErrorClass::retry},  // Deadlock.
    {"40003", ErrorClass::retry},  // Statement completion unknown.
    {"55P03", ErrorClass::retry},  // Lock not available.
    {"57014", ErrorClass::retry},  // Statement time-out.
    {"23505",
     ErrorClass::duplicate},        // Unique violation; on another key than the record's: poison.
    {"08", ErrorClass::outage},     // Connection.
    {"57P", ErrorClass::outage},    // Shutdown, crash, cannot connect now.
    {"25006", ErrorClass::outage},  // Read-only: a standby, or an operator at work.
    {"53", ErrorClass::outage},     // Disk full, out of memory, too many connections.
    {"58", ErrorClass::outage},     // System error.
    {"28", ErrorClass::config},     // Authorization.
    {"3D", ErrorClass::config},     // No such database.
    {"3F", ErrorClass::config},     // No such schema.
    {"42", ErrorClass::config},     // No such table or column, no right.
    {"22", ErrorClass::poison},     // Data.
    {"23502", ErrorClass::poison},  // Not null.
    {"23503", ErrorClass::poison},  // Foreign key.
    {"23514", ErrorClass::poison},  // Check.
    {"23P01", ErrorClass::poison},  // Exclusion.
    {"21000", ErrorClass::poison},  // Cardinality.
    {"54", ErrorClass::poison},     // Limits of the program.
    {"P0001", ErrorClass::poison},  // Raised by a trigger.
});

// SQLite's primary result codes, by their published numbers.
constexpr int kPrimaryMask = 0xff;
constexpr int kSqliteUnique = 2067;
constexpr int kSqlitePrimaryKey = 1555;
constexpr int kSqliteRowId = 2579;

}  // namespace

std::string_view to_string(ErrorClass error_class) {
  static constexpr std::array<std::string_view, kErrorClasses> kNames = {
      "outage", "retry", "config", "poison", "duplicate", "unknown", "fenced"};
  return kNames.at(std::to_underlying(error_class));
}

SinkError while_connecting(SinkError error) {
  const bool known =
      error.error_class == ErrorClass::config || error.error_class == ErrorClass::retry;
  if (!known) error.error_class = ErrorClass::outage;
  error.halve_batch = false;
  return error;
}

ErrorClass class_of_sqlstate(std::string_view code) {
  if (code.empty()) return ErrorClass::outage;
  const auto* found = std::ranges::find_if(
      kSqlstates, [&](const Rule& rule) { return code.starts_with(rule.prefix); });
  return found == kSqlstates.end() ? ErrorClass::unknown : found->error_class;
}

bool is_statement_timeout(std::string_view sqlstate) { return sqlstate == "57014"; }

ErrorClass class_of_sqlite(int code) {
  if (code == kSqliteUnique || code == kSqlitePrimaryKey || code == kSqliteRowId) {
    return ErrorClass::duplicate;
  }
  switch (code & kPrimaryMask) {
    case 5:   // BUSY
    case 6:   // LOCKED
    case 15:  // PROTOCOL: others were quicker at the locks of the WAL.
    case 17:  // SCHEMA: it is prepared again.
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

ErrorClass class_of_http(int status) {
  if (status == 0 || status == 502 || status == 503 || status == 504 || status == 507) {
    return ErrorClass::outage;
  }
  if (status == 429 || status == 408 || status == 425) return ErrorClass::retry;
  if (status == 401 || status == 403 || status == 404 || status == 405 || status == 407) {
    return ErrorClass::config;
  }
  if (status >= 300 && status < 400) return ErrorClass::config;  // It has moved, for every record.
  if (status == 409) return ErrorClass::duplicate;
  if (status >= 400 && status < 500) return ErrorClass::poison;
  return ErrorClass::unknown;  // 500 may be the record's fault.
}

}  // namespace baton::flow
