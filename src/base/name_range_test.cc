#include "base/name_range.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

using Names = std::vector<std::string>;

struct Taken {
  Names names;
  bool is_more = false;
};

Taken take(NameRange range, std::size_t most = 100) {
  const std::map<std::string, int, std::less<>> map{{"a", 1}, {"b.1", 2}, {"b.2", 3}, {"c", 4}};
  Taken taken;
  taken.is_more = take_names(map, range, [&](const std::string& name, int) {
    if (taken.names.size() == most) return false;
    taken.names.push_back(name);
    return true;
  });
  return taken;
}

TEST(NameRange, HoldsAllNamesUnlessToldOtherwise) {
  EXPECT_EQ(take({}).names, (Names{"a", "b.1", "b.2", "c"}));
}

TEST(NameRange, HoldsNamesWithThePrefixOnly) {
  EXPECT_EQ(take({.prefix = "b.", .after = {}}).names, (Names{"b.1", "b.2"}));
  EXPECT_EQ(take({.prefix = "d", .after = {}}).names, Names{});
}

// The name itself may be gone by the time the next page is asked for.
TEST(NameRange, BeginsBehindANameThatNeedNotExist) {
  EXPECT_EQ(take({.prefix = {}, .after = "b.1"}).names, (Names{"b.2", "c"}));
  EXPECT_EQ(take({.prefix = {}, .after = "b"}).names, (Names{"b.1", "b.2", "c"}));
  EXPECT_EQ(take({.prefix = "b.", .after = "a"}).names, (Names{"b.1", "b.2"}));
  EXPECT_EQ(take({.prefix = "b.", .after = "b.2"}).names, Names{});
  EXPECT_EQ(take({.prefix = "b.", .after = "c"}).names, Names{});
}

TEST(NameRange, SaysWhetherNamesAreLeft) {
  EXPECT_TRUE(take({}, 3).is_more);
  EXPECT_FALSE(take({}, 4).is_more);
  EXPECT_FALSE(take({.prefix = "b.", .after = {}}, 2).is_more);
  EXPECT_TRUE(take({.prefix = "b.", .after = {}}, 1).is_more);
}

}  // namespace
}  // namespace baton
