#include "base/result.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/assert.h"

namespace baton {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{Errc::invalid_argument, "odd"};
  return number / 2;
}

Result<std::string> quarter_as_text(int number) {
  BATON_TRY(const int once, half(number));
  BATON_TRY(const int twice, half(once));
  return std::to_string(twice);
}

Status only_even(int number) {
  BATON_TRY_STATUS(half(number));
  return {};
}

Result<std::unique_ptr<int>> boxed(int number) {
  BATON_TRY(const int halved, half(number));
  return std::make_unique<int>(halved);
}

TEST(Result, TryHandsOnTheValue) {
  const Result<std::string> result = quarter_as_text(12);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, "3");
}

// From the first and from the second step, and across result types.
TEST(Result, TryReturnsTheErrorUnchanged) {
  for (const int number : {3, 6}) {
    const Result<std::string> result = quarter_as_text(number);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::invalid_argument);
    EXPECT_EQ(result.error().text, "odd");
  }
}

TEST(Result, TryStatusPassesSuccessAndError) {
  EXPECT_TRUE(only_even(2).has_value());
  ASSERT_FALSE(only_even(1).has_value());
  EXPECT_EQ(only_even(1).error().code, Errc::invalid_argument);
}

TEST(Result, CarriesTypesThatOnlyMove) {
  Result<std::unique_ptr<int>> result = boxed(8);
  ASSERT_TRUE(result.has_value());
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 4);
}

TEST(Errc, NameAndTextComeFromTheList) {
  EXPECT_EQ(errc_name(Errc::lease_lost), "lease_lost");
  EXPECT_EQ(errc_text(Errc::lease_lost), "the lease ended before the request arrived");
  EXPECT_EQ(to_string(Error{Errc::lease_lost, "token 3.17"}), "lease_lost: token 3.17");
}

// A newer peer may send a code that this version does not know.
TEST(Errc, UnknownCodeHasANameAndText) {
  const auto unknown = static_cast<Errc>(65'000);
  EXPECT_EQ(errc_name(unknown), "unknown");
  EXPECT_FALSE(errc_text(unknown).empty());
  EXPECT_EQ(to_string(Error{unknown, "too_hot: 90 degrees"}), "too_hot: 90 degrees");
}

// The numbers are on the wire: this list only ever grows.
TEST(Errc, NumbersOnTheWireStay) {
  EXPECT_EQ(static_cast<int>(Errc::invalid_argument), 1);
  EXPECT_EQ(static_cast<int>(Errc::internal), 9);
  EXPECT_EQ(static_cast<int>(Errc::lease_lost), 101);
  EXPECT_EQ(static_cast<int>(Errc::dedup_full), 106);
  EXPECT_EQ(static_cast<int>(Errc::round_not_found), 201);
  EXPECT_EQ(static_cast<int>(Errc::malformed), 210);
}

TEST(Errc, NoNumberIsUsedTwiceAndNoneIsZero) {
  std::set<int> numbers;
#define ERRC(name, number, text)              \
  EXPECT_TRUE(numbers.insert(number).second); \
  EXPECT_EQ(errc_name(Errc::name), #name);
#include <baton/errc.def>
#undef ERRC
  EXPECT_FALSE(numbers.contains(0)) << "0 is success on the wire";
}

TEST(Assert, FailureNamesTheConditionAndAborts) {
  EXPECT_DEATH(BATON_ASSERT(1 + 1 == 3), "assertion failed: 1 \\+ 1 == 3 .*result_test.cc");
  BATON_ASSERT(1 + 1 == 2);
}

}  // namespace
}  // namespace baton
