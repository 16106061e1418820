#include "base/yaml_hint.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(YamlHint, NamesATabAndAValueWithoutQuotes) {
  EXPECT_EQ(explain_yaml("sink:\n\turl: x\n", 2, "illegal map value"),
            "line 2 begins with a tab; YAML wants spaces");
  EXPECT_EQ(explain_yaml("sink:\n \turl: x\nname: y", 3, "end of map not found"),
            "line 2 begins with a tab; YAML wants spaces");
  EXPECT_EQ(explain_yaml("sink:\n  url: stdout:\n", 2, "illegal map value"),
            "a value that ends in ':' or holds ': ' must stand in quotes");
  EXPECT_EQ(explain_yaml("a: b\tc", 1, "odd"), "odd");
  EXPECT_EQ(explain_yaml("", 7, "odd"), "odd");
}

}  // namespace
}  // namespace baton
