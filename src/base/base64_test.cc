#include "base/base64.h"

#include <array>
#include <utility>

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Base64, IsAsRfc4648SaysAndComesBack) {
  using Pair = std::pair<std::string_view, std::string_view>;
  for (const auto& [bytes, text] : std::array<Pair, 6>{{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foobar", "Zm9vYmFy"},
                                                        {"\xff\xff\xfe", "///+"}}}) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_base64(base64(all)), all);
}

TEST(Base64, AnythingElseIsRefused) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zm 9",
                                      "Zg==Zg==", "Zm9v\n", "Zm9\xff"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace baton
