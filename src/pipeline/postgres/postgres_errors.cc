#include "pipeline/postgres/postgres_errors.h"

#include <algorithm>
#include <array>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;

struct Rule {
  std::string_view prefix;
  ErrorClass error_class;
};

// The first rule that matches counts.
constexpr std::array kSqlstates = std::to_array<Rule>({
    {"40001", ErrorClass::retry},  // Serialization failure.
    {"40P01", ErrorClass::retry},  // Deadlock.
    {"40003", ErrorClass::retry},  // Statement completion unknown.
    {"55P03", ErrorClass::retry},  // Lock not available.
    {"57014", ErrorClass::retry},  // Statement timeout.
    // Unique violation. Statements handle conflicts of the idempotency key, so this is about
    // another column.
    {"23505", ErrorClass::poison},
    // The session has lost its prepared statements, or was ended while it waited: a new session
    // works.
    {"26000", ErrorClass::outage},
    {"25P03", ErrorClass::outage},
    {"08", ErrorClass::outage},     // Connection.
    {"57P", ErrorClass::outage},    // Shutdown, crash, cannot connect now.
    {"25006", ErrorClass::outage},  // Read-only: a standby, or an operator at work.
    {"53", ErrorClass::outage},     // Disk full, out of memory, too many connections.
    {"58", ErrorClass::outage},     // System error.
    {"28", ErrorClass::config},     // Authorization.
    {"3D", ErrorClass::config},     // No such database.
    {"3F", ErrorClass::config},     // No such schema.
    {"42", ErrorClass::config},     // No such table or column, or no permission.
    {"22", ErrorClass::poison},     // Data.
    {"23502", ErrorClass::poison},  // Not null.
    {"23503", ErrorClass::poison},  // Foreign key.
    {"23514", ErrorClass::poison},  // Check.
    {"23P01", ErrorClass::poison},  // Exclusion.
    {"21000", ErrorClass::poison},  // Cardinality.
    {"54", ErrorClass::poison},     // Limits of the server.
    {"P0001", ErrorClass::poison},  // Raised by a trigger.
});

}  // namespace

ErrorClass class_of_postgres(std::string_view sqlstate) {
  if (sqlstate.empty()) return ErrorClass::outage;
  const auto* found = std::ranges::find_if(
      kSqlstates, [&](const Rule& rule) { return sqlstate.starts_with(rule.prefix); });
  return found == kSqlstates.end() ? ErrorClass::unknown : found->error_class;
}

bool is_statement_timeout(std::string_view sqlstate) { return sqlstate == "57014"; }

}  // namespace baton::pipeline
