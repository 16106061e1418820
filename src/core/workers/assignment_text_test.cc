#include "core/workers/assignment_text.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/workers/documents.h"

namespace baton::partition {
namespace {

using std::chrono::milliseconds;

const std::string kText =
    R"({"first":0,"holdings":[[0,4,1,9,2],[-1,0,-1,0,0],[1,12,-1,1763292000123,4]],)"
    R"("partitions":3,"sessions":["w1.a","w2.b-_"],"version":1})";

Assignment meant() {
  return {.partitions = 3,
          .first = 0,
          .holdings = {{"w1.a", 4, "w2.b-_", milliseconds(9), Why::rebalance},
                       {"", 0, "", milliseconds(0), Why::none},
                       {"w2.b-_", 12, "", milliseconds(1'763'292'000'123), Why::evicted}}};
}

/// How a document is read: its canonical text, or why it is refused.
std::string taken_for(const Result<Assignment>& result) {
  return result.has_value() ? write_assignment(*result) : result.error().text;
}

/// The fast reader reads the text as a JSON reader does, or refuses it.
void expect_no_other_meaning(const std::string& text) {
  const auto short_way = read_as_written(text);
  if (!short_way.has_value()) return;
  const auto long_way = decode_assignment_of_any_form(text);
  ASSERT_TRUE(long_way.has_value()) << text << ": " << long_way.error().text;
  EXPECT_EQ(*short_way, *long_way) << text;
}

TEST(AssignmentText, IsAsItHasAlwaysBeen) {
  EXPECT_EQ(encode(meant()), kText);
  EXPECT_EQ(decode_assignment(kText).value(), meant());
}

// The JSON reader is ten times slower.
TEST(AssignmentText, WhatIsWrittenIsReadTheShortWay) {
  EXPECT_EQ(read_as_written(kText), meant());
  Assignment large{
      .partitions = kPartitionsMax, .first = kPartitionsMax - kChunkPartitions, .holdings = {}};
  for (std::uint32_t i = 0; i < kChunkPartitions; ++i) {
    large.holdings.push_back({.owner = fmt::format("w{}.{}", i % 64, i),
                              .epoch = kEpochMax,
                              .next = fmt::format("w{}.next", i),
                              .since = milliseconds(std::int64_t{1} << 53U),
                              .why = Why::restart});
  }
  EXPECT_EQ(read_as_written(write_assignment(large)), large);
}

TEST(AssignmentText, NoChangeOfOneByteIsTakenForSomethingElse) {
  for (std::size_t at = 0; at < kText.size(); ++at) {
    std::string shorter = kText;
    expect_no_other_meaning(shorter.erase(at, 1));
    expect_no_other_meaning(kText.substr(0, at));
    for (int byte = 0; byte < 256; ++byte) {
      std::string other = kText;
      other[at] = static_cast<char>(byte);
      expect_no_other_meaning(other);
      expect_no_other_meaning(std::string(kText).insert(at, 1, static_cast<char>(byte)));
    }
  }
}

struct Case {
  std::string was;  // Of kText.
  std::string is;
  std::string taken_for;  // Empty: the same as kText.
};

class Unusual : public ::testing::TestWithParam<Case> {};

TEST_P(Unusual, IsTakenAsBefore) {
  std::string text = kText;
  const std::size_t at = text.find(GetParam().was);
  ASSERT_NE(at, std::string::npos) << GetParam().was;
  text.replace(at, GetParam().was.size(), GetParam().is);
  const std::string& expected = GetParam().taken_for;
  EXPECT_EQ(taken_for(decode_assignment(text)), expected.empty() ? kText : expected) << text;
  expect_no_other_meaning(text);
}

std::string refused(std::string_view why) { return fmt::format("the assignment document {}", why); }
std::string out_of_range(std::string_view field, std::int64_t least, std::int64_t most) {
  return refused(fmt::format(R"("{}" must be {} to {})", field, least, most));
}
std::string nested(std::size_t depth) {
  return R"({"deep":)" + std::string(depth, '[') + std::string(depth, ']') + R"(,"first")";
}

const std::string kNoObject = refused("is no JSON object");
const std::string kNoSession = refused("\"sessions\" must be worker.incarnation");
constexpr auto kMost = static_cast<std::int64_t>(kEpochMax);

INSTANTIATE_TEST_SUITE_P(
    Form, Unusual,
    ::testing::Values(Case{"{\"first\"", " {\n\t\"first\"\r ", ""}, Case{"{", "\xef\xbb\xbf{", ""},
                      Case{"\"version\":1}", "\"version\":1} \n", ""},
                      Case{"{\"first\":0,", "{", refused("has no number \"first\"")},
                      Case{"\"first\":0", "\"partitions\":3,\"first\":0", ""},
                      Case{"\"first\"", "\"new\":{\"a\":[null,1.5e300,true]},\"first\"", ""},
                      Case{"{\"first\"", nested(1), ""}, Case{"{\"first\"", nested(10'000), ""},
                      Case{"w1.a", "w\\u0031.a", ""}, Case{"\"first\"", "\"f\\u0069rst\"", ""}));

INSTANTIATE_TEST_SUITE_P(
    Garbage, Unusual,
    ::testing::Values(
        Case{"{", "", kNoObject}, Case{"\"version\":1}", "\"version\":1", kNoObject},
        Case{"\"version\":1}", "\"version\":1}}", kNoObject},
        Case{"\"version\":1}", "\"version\":1,}", kNoObject},
        Case{"[0,4,1,9,2],", "[0,4,1,9,2],,", kNoObject},
        Case{"\"w2.b-_\"]", "\"w2.b-_\",]", kNoObject}, Case{"w1.a", "w1\xff", kNoObject},
        Case{"w1.a", "w1\n", kNoObject}, Case{"w1.a", "\\ud83d", kNoObject},
        Case{"w1.a", std::string("w1\0", 3), kNoObject},
        Case{"{\"first\"", R"({"deep":)" + std::string(10'000, '['), kNoObject},
        Case{"w1.a", "\\ud83d\\ude00", kNoSession}, Case{"w1.a", "bad name", kNoSession},
        Case{"w1.a", "nodot", kNoSession}, Case{"w1.a", "", kNoSession},
        Case{"w1.a", "w1.a.b", kNoSession},
        Case{"\"w1.a\"", "7", refused("\"sessions\" must be texts")},
        Case{"\"w1.a\",\"w2.b-_\"", "", out_of_range("holdings: session", -1, -1)},
        Case{"[0,4,1,9,2]", "[0,4,1,9]", refused("\"holdings\" must be lists of 5")},
        Case{"[0,4,1,9,2]", "[0,4,1,9,2,0]", refused("\"holdings\" must be lists of 5")},
        Case{"[0,4,1,9,2]", "{}", refused("\"holdings\" must be lists of 5")},
        Case{"[0,4,1,9,2],", "", refused("does not hold the partitions that it says")},
        Case{"\"first\":0", "\"first\":1", refused("does not hold the partitions that it says")},
        Case{"\"version\":1", "\"version\":2",
             refused("has version 2; this program knows up to 1")}));

// Of a key that occurs twice the last one counts.
INSTANTIATE_TEST_SUITE_P(
    Twice, Unusual,
    ::testing::Values(Case{"\"version\":1", "\"version\":9,\"version\":1", ""},
                      Case{"\"version\":1", "\"version\":1,\"version\":9",
                           refused("has version 9; this program knows up to 1")},
                      Case{"{\"first\"", R"({"holdings":7,"sessions":[],"first")", ""},
                      Case{"\"version\":1", R"("version":1,"holdings":7)",
                           refused("has no list \"holdings\"")}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, Unusual,
    ::testing::Values(
        Case{"[0,4", "[00,4", kNoObject}, Case{"[0,4", "[0,+4", kNoObject},
        Case{"[0,4", "[-0,4", ""},
        Case{"[0,4", "[0,4.0", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,4e0", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,-4", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,\"4\"", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,4503599627370497", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,18446744073709551615", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0,18446744073709551620", out_of_range("holdings: epoch", 0, kMost)},
        Case{"[0,4", "[0," + std::string(400, '9'), kNoObject},
        Case{"[0,4", "[2,4", out_of_range("holdings: session", -1, 1)},
        Case{"[0,4", "[-2,4", out_of_range("holdings: session", -1, 1)},
        Case{",9,2]", ",9,6]", out_of_range("holdings: why", 0, 5)},
        Case{"\"partitions\":3", "\"partitions\":4294967299",
             out_of_range("partitions", 1, kPartitionsMax)},
        Case{"\"partitions\":3", "\"partitions\":0", out_of_range("partitions", 1, kPartitionsMax)},
        Case{"\"first\":0", "\"first\":4294967296", out_of_range("first", 0, kPartitionsMax)}));

// The limit is that of a document, in whichever form it is written.
TEST(AssignmentText, ADocumentThatIsTooLargeIsRefused) {
  std::string text = kText;
  text.replace(text.find("w1.a"), 4, std::string(kDocumentBytesMax, 'w'));
  EXPECT_EQ(taken_for(decode_assignment(text)),
            refused(fmt::format("has {} bytes; the limit is {}", text.size(), kDocumentBytesMax)));
}

}  // namespace
}  // namespace baton::partition
