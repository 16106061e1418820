#include "pipeline/postgres/postgres_errors.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;

TEST(PostgresErrors, HaveAClass) {
  EXPECT_EQ(class_of_postgres(""), ErrorClass::outage);
  for (const char* code :
       {"08006", "57P01", "57P03", "57P05", "25006", "53100", "53300", "58030"}) {
    EXPECT_EQ(class_of_postgres(code), ErrorClass::outage) << code;
  }
  for (const char* code : {"40001", "40P01", "40003", "55P03", "57014"}) {
    EXPECT_EQ(class_of_postgres(code), ErrorClass::retry) << code;
  }
  for (const char* code : {"28P01", "3D000", "3F000", "42P01", "42703", "42501"}) {
    EXPECT_EQ(class_of_postgres(code), ErrorClass::config) << code;
  }
  for (const char* code :
       {"22001", "22P02", "23502", "23503", "23514", "23P01", "21000", "54000", "P0001", "23505"}) {
    EXPECT_EQ(class_of_postgres(code), ErrorClass::poison) << code;
  }
  EXPECT_EQ(class_of_postgres("XX000"), ErrorClass::unknown);
  EXPECT_TRUE(is_statement_timeout("57014"));
}

}  // namespace
}  // namespace baton::pipeline
