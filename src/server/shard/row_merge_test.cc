#include "server/shard/row_merge.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

constexpr Table kOne{1};
constexpr Table kTwo{2};

std::string text(const RowBatch& batch) {
  std::string out;
  for (const RowChange& change : batch.changes()) {
    out += std::to_string(change.table.value) + change.key;
    if (change.kind == RowChange::Kind::put) out += "=" + change.value;
    if (change.kind == RowChange::Kind::erase_range) out += ".." + change.value;
    out += ' ';
  }
  return out;
}

TEST(RowMerge, WhatIsPutOrErasedAgainIsLeftOut) {
  RowBatch older;
  older.put(kOne, "a", "1");
  older.put(kOne, "b", "1");
  older.put(kTwo, "a", "1");
  older.erase(kOne, "c");
  RowBatch newer;
  newer.erase(kOne, "a");
  newer.put(kOne, "c", "2");
  EXPECT_EQ(text(surviving(older, newer)), "1b=1 2a=1 ");
}

TEST(RowMerge, ARangeTakesWhatLiesInItAndStaysItself) {
  RowBatch older;
  older.put(kOne, "a", "1");
  older.put(kOne, "b", "1");
  older.put(kOne, "c", "1");
  older.erase_range(kOne, "a", "z");
  RowBatch newer;
  newer.erase_range(kOne, "a", "c");
  EXPECT_EQ(text(surviving(older, newer)), "1c=1 1a..z ");
  EXPECT_EQ(text(surviving(older, {})), "1a=1 1b=1 1c=1 1a..z ");
}

}  // namespace
}  // namespace baton
