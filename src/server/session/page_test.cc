#include "server/session/page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace baton {
namespace {

struct Thing {
  std::string name;
};
struct Answer {
  std::vector<Thing> things;
  bool more = false;
};
using Names = std::vector<std::string>;

Answer answer(const Names& names, bool more = false) {
  Answer out{.things = {}, .more = more};
  for (const std::string& name : names) out.things.push_back({name});
  return out;
}

struct Merged {
  Names names;
  bool more = false;
};
Merged merge(std::vector<Answer> answers, std::size_t most = 100) {
  const Listed<Thing> page = merge_page(answers, &Answer::things, &Thing::name, most);
  Merged merged{.names = {}, .more = page.more};
  for (const Thing& thing : page.items) merged.names.push_back(thing.name);
  return merged;
}

void expect_bad_token(const Result<Page>& page) {
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().code, Errc::invalid_argument);
  EXPECT_NE(page.error().text.find("page_token"), std::string::npos) << page.error().text;
}

TEST(Page, ATokenLeadsBehindTheLastKey) {
  const Page first = read_page("queues a", 7, "").value();
  EXPECT_EQ(first.after, "");
  EXPECT_EQ(first.items_max, 7U);
  const Page second = read_page("queues a", 0, page_token("queues a", "a.9")).value();
  EXPECT_EQ(second.after, "a.9");
  EXPECT_EQ(second.items_max, limits::kPageItems);
}

TEST(Page, ASizeOutOfItsLimitsIsRefusedWithFieldAndLimit) {
  EXPECT_TRUE(read_page("queues", 1000, "").has_value());
  for (const std::int64_t size : {-1, 1001}) {
    const Result<Page> page = read_page("queues", size, "");
    ASSERT_FALSE(page.has_value());
    EXPECT_EQ(page.error().text, fmt::format("page_size is {}; it may be 0 (as many as allowed) "
                                             "to 1000",
                                             size));
  }
}

// A client that changes the prefix between two pages would get the end of another list.
TEST(Page, ATokenOfAnotherListIsRefused) {
  expect_bad_token(read_page("queues b", 0, page_token("queues a", "a.9")));
  expect_bad_token(read_page("streams a", 0, page_token("queues a", "a.9")));
}

TEST(Page, WhatIsNoTokenIsRefused) {
  const std::string good = page_token("queues", "orders");
  std::string changed = from_base64(good).value();
  changed.back() = 'x';
  std::string other_version = from_base64(good).value();
  other_version.front() = 2;
  for (const std::string& token :
       {std::string("orders"), std::string("!"), good.substr(0, good.size() - 4), base64(changed),
        base64(other_version), base64("\x01"), std::string(100'000, 'A')}) {
    SCOPED_TRACE(token.substr(0, 40));
    expect_bad_token(read_page("queues", 0, token));
  }
}

TEST(Page, AGroupsKeyIsReadBack) {
  const GroupId group{.stream = "events/eu", .partition = 1023, .name = "mail"};
  EXPECT_EQ(group_after({.list = "groups", .after = to_key(group)}).value(), group);
  EXPECT_EQ(group_after({.list = "groups", .after = ""}).value(), std::nullopt);
  for (const char* const key : {"events", "events/1/mail"}) {
    EXPECT_FALSE(group_after({.list = "groups", .after = key}).has_value()) << key;
  }
  EXPECT_FALSE(group_after({.list = "g", .after = std::string("a\0x\0b", 5)}).has_value());
}

TEST(Page, PartsOfShardsBecomeOneOrder) {
  const Merged merged = merge({answer({"b", "d"}), answer({"a", "c"}), answer({})});
  EXPECT_EQ(merged.names, (Names{"a", "b", "c", "d"}));
  EXPECT_FALSE(merged.more);
}

TEST(Page, WhatExceedsThePageWaits) {
  const Merged merged = merge({answer({"b", "d"}), answer({"a", "c"})}, 3);
  EXPECT_EQ(merged.names, (Names{"a", "b", "c"}));
  EXPECT_TRUE(merged.more);
}

// The first shard may still have "bb": showing "c" now would skip it for ever.
TEST(Page, NothingIsShownBehindTheEndOfAShardThatHasMore) {
  const Merged merged = merge({answer({"a", "b"}, true), answer({"aa", "c"})});
  EXPECT_EQ(merged.names, (Names{"a", "aa", "b"}));
  EXPECT_TRUE(merged.more);
  EXPECT_EQ(merge({answer({"a", "b"}, true), answer({"aa", "c"}, true)}).names,
            (Names{"a", "aa", "b"}));
}

}  // namespace
}  // namespace baton
