#include "pipeline/sqlite/sqlite_errors.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;

TEST(SqliteErrors, HaveAClass) {
  EXPECT_EQ(class_of_sqlite(5), ErrorClass::retry);
  EXPECT_EQ(class_of_sqlite(261), ErrorClass::retry);  // BUSY_RECOVERY
  EXPECT_EQ(class_of_sqlite(15), ErrorClass::retry);   // PROTOCOL
  EXPECT_EQ(class_of_sqlite(13), ErrorClass::outage);
  EXPECT_EQ(class_of_sqlite(778), ErrorClass::outage);  // IOERR_WRITE
  EXPECT_EQ(class_of_sqlite(1), ErrorClass::config);
  EXPECT_EQ(class_of_sqlite(1299), ErrorClass::poison);  // CONSTRAINT_NOTNULL
  EXPECT_EQ(class_of_sqlite(2067), ErrorClass::duplicate);
  EXPECT_EQ(class_of_sqlite(99), ErrorClass::unknown);
}

}  // namespace
}  // namespace baton::pipeline
