#include "base/names.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Names, NewOnesHaveNoPartThatReadsAsAPath) {
  for (const char* name : {"orders", "eu/orders", "a.b/..c", "...", "a:b"}) {
    EXPECT_TRUE(validate_new_name("queue name", name).has_value()) << name;
  }
  for (const char* name : {"", ".", "..", "../etc", "a/../b", "/a", "a/", "a//b"}) {
    EXPECT_FALSE(validate_new_name("queue name", name).has_value()) << name;
  }
  EXPECT_EQ(validate_new_name("queue name", "../etc").error().text,
            "queue name has a part '..' between slashes; a part may not be empty, '.' or '..'");
}

// Everything that an older version created is still found by its name.
TEST(Names, OldOnesAreStillNames) {
  EXPECT_TRUE(validate_name("queue name", "../etc", 200).has_value());
}

}  // namespace
}  // namespace baton
