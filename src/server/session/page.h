#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/group/types.h"
#include "server/session/limits.h"

/// Lists in pages, for any protocol. A page has a bounded number of items, and a token for the next
/// page. A token holds the key of the last item shown: the next page begins after that key,
/// whatever was created or deleted in between.
namespace baton {

/// The part of a list that a client asked for.
struct Page {
  std::string list{};   // Its name and filter: a token is valid for one list.
  std::string after{};  // The key of the last item of the previous page; empty for the first page.
  std::size_t items_max = limits::kPageItems;
};

/// The question to the shards, and the page that their answers become.
template <class Wanted>
struct Paged {
  Page page;
  Wanted wanted;
};

/// `size` 0: as many as allowed. Fails with invalid_argument, and names the field `page_size` or
/// `page_token`, if the size is out of its limits or the token is not one of this list.
Result<Page> read_page(std::string list, std::int64_t size, std::string_view token);

/// The token for the page after the item with this key.
std::string page_token(std::string_view list, std::string_view last_key);

/// The key of a group in a list of groups, and back.
std::string to_key(const GroupId& group);
Result<std::optional<GroupId>> group_after(const Page& page);

/// A page that is put together from the shards' answers.
template <class Item>
struct Listed {
  std::vector<Item> items;
  bool more = false;
};

/// Puts the shards' parts together, in the order of `key(item)`. An `Answer` has its items in
/// `part`, in the same order, and says in `more` that it has others after them. Items of other
/// shards after the last item of such an answer wait for a later page, because showing them now
/// would leave a gap.
template <class Answer, class Item, class Key>
Listed<Item> merge_page(std::vector<Answer>& answers, std::vector<Item> Answer::* part, Key key,
                        std::size_t items_max) {
  Listed<Item> page;
  auto before = [&](const Item& left, const Item& right) {
    return std::invoke(key, left) < std::invoke(key, right);
  };
  std::optional<Item> end;
  for (Answer& answer : answers) {
    std::vector<Item>& items = answer.*part;
    if (answer.more && !items.empty()) {
      page.more = true;
      if (!end.has_value() || before(items.back(), *end)) end = items.back();
    }
    std::ranges::move(items, std::back_inserter(page.items));
  }
  std::ranges::sort(page.items, before);
  if (end.has_value()) {
    page.items.erase(std::ranges::upper_bound(page.items, *end, before), page.items.end());
  }
  if (page.items.size() > items_max) {
    page.items.resize(items_max);
    page.more = true;
  }
  return page;
}

}  // namespace baton
