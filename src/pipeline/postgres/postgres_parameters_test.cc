#include "pipeline/postgres/postgres_parameters.h"

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "pipeline/postgres/postgres_connection.h"
#include "pipeline/postgres/postgres_errors.h"
#include "pipeline/postgres/postgres_writer.h"

namespace baton::pipeline {
namespace {

using namespace std::string_literals;
using flow::ErrorClass;
using schema::Cell;

TEST(PostgresParameters, TextsAreNotQuotedAndNullIsNotEmpty) {
  PostgresParameters parameters;
  parameters.add_texts(std::array<Cell, 3>{"a\"\\", "", schema::kNullCell});
  EXPECT_EQ(parameters.bytes(0),
            "\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\3\0\0\0\1"
            "\0\0\0\3a\"\\\0\0\0\0\xff\xff\xff\xff"s);
}

TEST(PostgresParameters, IntegersHaveEightBytes) {
  PostgresParameters parameters;
  parameters.add_integers(std::array<Cell, 3>{"-2", schema::kNullCell, "9223372036854775807"});
  EXPECT_EQ(parameters.bytes(0),
            "\0\0\0\1\0\0\0\1\0\0\0\x14\0\0\0\3\0\0\0\1"
            "\0\0\0\x8\xff\xff\xff\xff\xff\xff\xff\xfe"
            "\xff\xff\xff\xff"
            "\0\0\0\x8\x7f\xff\xff\xff\xff\xff\xff\xff"s);
  parameters.add_numbers(std::array<std::int64_t, 1>{258});
  EXPECT_EQ(parameters.bytes(1),
            "\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0\1\0\0\0\1\0\0\0\x8\0\0\0\0\0\0\1\2"s);
  parameters.add_integer(-1);
  EXPECT_EQ(parameters.bytes(2), "\xff\xff\xff\xff\xff\xff\xff\xff"s);
}

// A child table may have no row in a batch.
TEST(PostgresParameters, AnEmptyArrayHasNoDimension) {
  PostgresParameters parameters;
  parameters.add_texts({});
  EXPECT_EQ(parameters.bytes(0), "\0\0\0\0\0\0\0\0\0\0\0\x19"s);
}

TEST(PostgresParameters, AreUsedAgain) {
  PostgresParameters parameters;
  parameters.add_text("a long one");
  parameters.add_text("b");
  parameters.clear();
  parameters.add_text("c");
  EXPECT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters.bytes(0), "c");
}

TEST(PostgresErrors, HaveTheClassOfTheirSqlstate) {
  EXPECT_EQ(class_of_postgres(""), ErrorClass::outage);
  EXPECT_EQ(class_of_postgres("57P01"), ErrorClass::outage);
  EXPECT_EQ(class_of_postgres("40P01"), ErrorClass::retry);
  EXPECT_EQ(class_of_postgres("42P01"), ErrorClass::config);
  EXPECT_EQ(class_of_postgres("22001"), ErrorClass::poison);
  // Never about the idempotency key, whose conflicts the statements handle.
  EXPECT_EQ(class_of_postgres("23505"), ErrorClass::poison);
  // A connection pooler switched the session: no record is the cause.
  EXPECT_EQ(class_of_postgres("26000"), ErrorClass::outage);
}

TEST(PostgresErrors, AConnectionsErrorIsInItsMessage) {
  EXPECT_EQ(sqlstate_in("connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: "
                        "password authentication failed for user \"x\"\n"
                        "LOCATION:  auth_failed, auth.c:326"),
            "28P01");
  EXPECT_EQ(sqlstate_in("connection to server failed: Connection refused\n\tIs the server "
                        "running on that host and accepting TCP/IP connections?"),
            "");
  EXPECT_EQ(sqlstate_in("FATAL:  database \"3D000:\" does not exist"), "");
  // One of two servers may still come up.
  EXPECT_EQ(sqlstate_in("FATAL:  57P03: starting up\nFATAL:  28P01: no"), "57P03");
  EXPECT_EQ(sqlstate_in("FATAL:  28P01: no\nFATAL:  57P03: starting up"), "57P03");
}

TEST(PostgresName, HasNoPassword) {
  EXPECT_EQ(postgres_name("postgresql://me:secret@db.example:5433/shop"),
            "postgres:db.example:5433/shop");
  EXPECT_EQ(postgres_name("host=a password=secret dbname=b"), "postgres:a:5432/b");
}

TEST(PostgresFlags, AreReadByPlace) {
  EXPECT_TRUE(is_set("{t,f,t}", 0));
  EXPECT_FALSE(is_set("{t,f,t}", 1));
  EXPECT_TRUE(is_set("{t,f,t}", 2));
  EXPECT_FALSE(is_set("{t,f,t}", 3));
}

}  // namespace
}  // namespace baton::pipeline
