#include <unordered_set>

#include <baton/strong.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Strong, ComparesAndHashesAsItsNumber) {
  using Apples = Strong<struct ApplesTag>;
  EXPECT_EQ(Apples{3}, Apples{3});
  EXPECT_LT(Apples{3}, Apples{4});
  EXPECT_EQ(Apples{}.value, 0U);
  const std::unordered_set<Apples> set{Apples{1}, Apples{1}, Apples{2}};
  EXPECT_EQ(set.size(), 2U);
}

}  // namespace
}  // namespace baton
