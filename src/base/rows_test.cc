#include "base/rows.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(RowBatch, KeepsTheOrderAndCountsTheBytes) {
  RowBatch batch;
  EXPECT_TRUE(batch.empty());
  batch.put(Table{1}, "key", "value");
  batch.erase(Table{2}, "gone");
  batch.erase_range(Table{1}, "a", "bb");

  ASSERT_EQ(batch.changes().size(), 3U);
  EXPECT_EQ(batch.changes()[0].kind, RowChange::Kind::put);
  EXPECT_EQ(batch.changes()[0].value, "value");
  EXPECT_EQ(batch.changes()[1].kind, RowChange::Kind::erase);
  EXPECT_EQ(batch.changes()[1].table, Table{2});
  EXPECT_EQ(batch.changes()[2].kind, RowChange::Kind::erase_range);
  EXPECT_EQ(batch.changes()[2].value, "bb");
  EXPECT_EQ(batch.bytes(), 8U + 4U + 3U);
}

}  // namespace
}  // namespace baton
