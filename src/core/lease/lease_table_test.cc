#include "core/lease/lease_table.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using Table = LeaseTable<int, const char>;

constexpr Instant at(std::int64_t ns) { return {ns}; }
constexpr char kFirst = 'a';
constexpr char kSecond = 'b';

// The next holder of the work must not lose it to a slow predecessor.
TEST(LeaseTable, AnEndedTokenNamesNothing) {
  Table table;
  table.grant(1, at(10), &kFirst);
  table.end(1);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.size(), 0U);
}

// The deadline and the acknowledgement may cross: until the end is a fact, the lease holds.
TEST(LeaseTable, PassingTheDeadlineDoesNotEndTheLease) {
  Table table;
  table.grant(1, at(10), &kFirst);
  EXPECT_EQ(table.expired(at(11)), &kFirst);
  EXPECT_EQ(table.find(1), &kFirst);
}

TEST(LeaseTable, ExpiryComesInOrderOfDeadlineNotOfGrant) {
  Table table;
  table.grant(1, at(20), &kFirst);
  table.grant(2, at(10), &kSecond);
  EXPECT_EQ(table.expired(at(9)), nullptr);
  EXPECT_EQ(table.next_deadline(), at(10));
  EXPECT_EQ(table.expired(at(25)), &kSecond);
  table.end(2);
  EXPECT_EQ(table.expired(at(25)), &kFirst);
}

TEST(LeaseTable, ExtendMovesTheDeadlineBothWays) {
  Table table;
  table.grant(1, at(10), &kFirst);
  table.grant(2, at(20), &kSecond);
  table.extend(1, at(30));
  EXPECT_EQ(table.next_deadline(), at(20));
  table.extend(1, at(5));
  EXPECT_EQ(table.next_deadline(), at(5));
}

TEST(LeaseTable, AnEmptyTableHasNoDeadline) {
  const Table table;
  EXPECT_EQ(table.next_deadline(), Instant::never());
  EXPECT_EQ(table.expired(Instant::never()), nullptr);
}

// A token issued twice is a double delivery: aborting is better.
TEST(LeaseTableDeathTest, GrantingATokenTwiceAborts) {
  Table table;
  table.grant(1, at(10), &kFirst);
  EXPECT_DEATH(table.grant(1, at(11), &kSecond), "assertion failed");
}

}  // namespace
}  // namespace baton
