#include "server/shard/spill_buffer.h"

#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/fake_store.h"

namespace baton {
namespace {

constexpr Table kTable{1};
constexpr Table kOther{2};

class SpillBufferTest : public testing::Test {
 protected:
  static RowBatch rows(std::initializer_list<int> numbers, Table table = kTable) {
    RowBatch batch;
    for (const int number : numbers) batch.put(table, fmt::format("{:03}", number), "value");
    return batch;
  }
  static RowRange range(std::size_t rows_max = 100, std::size_t bytes_max = 1000) {
    return {
        .table = kTable, .begin = "", .end = "999", .rows_max = rows_max, .bytes_max = bytes_max};
  }
  static std::string keys(const std::vector<Row>& rows) {
    std::string all;
    for (const Row& row : rows) all += row.key + " ";
    return all;
  }

  std::shared_ptr<FakeStoreMedia> media_ = std::make_shared<FakeStoreMedia>(1);
  FakeStore store_{media_};
  SpillBuffer buffer_{store_};
};

// A consumer must get messages behind rows that the disk has no room for.
TEST_F(SpillBufferTest, WhatTheDiskDoesNotTakeIsReadAllTheSame) {
  ASSERT_TRUE(buffer_.spill(rows({1, 3, 5})).has_value());
  media_->set_disk_full(true);
  EXPECT_EQ(buffer_.spill(rows({2, 6})).error().code, Errc::disk_full);
  EXPECT_EQ(buffer_.spill(rows({4, 7}, kOther)).error().code, Errc::disk_full);
  EXPECT_EQ(keys(buffer_.scan(range()).value()), "001 002 003 005 006 ");
  EXPECT_EQ(keys(buffer_.scan(range(3)).value()), "001 002 003 ");
  EXPECT_EQ(keys(buffer_.scan(range(100, 1)).value()), "001 ");
  EXPECT_TRUE(buffer_.get(kTable, "006")->has_value());
  EXPECT_TRUE(buffer_.get(kTable, "005")->has_value());
  EXPECT_FALSE(buffer_.get(kTable, "004")->has_value());
}

TEST_F(SpillBufferTest, WithRoomItGoesToTheStore) {
  media_->set_disk_full(true);
  EXPECT_FALSE(buffer_.spill(rows({1, 2})).has_value());
  EXPECT_FALSE(buffer_.flush().has_value());
  media_->set_disk_full(false);
  // The oldest rows go first.
  EXPECT_FALSE(buffer_.spill(rows({3})).has_value());
  EXPECT_TRUE(buffer_.flush().has_value());
  EXPECT_EQ(keys(store_.scan(range()).value()), "001 002 003 ");
  EXPECT_EQ(keys(buffer_.scan(range()).value()), "001 002 003 ");
  EXPECT_TRUE(buffer_.spill(rows({4})).has_value());
}

// Page by page, with any limits, a reader sees every row once and in order.
TEST_F(SpillBufferTest, PagesMissNothing) {
  Random random(7);
  for (int run = 0; run < 200; ++run) {
    auto media = std::make_shared<FakeStoreMedia>(run);
    FakeStore store(media);
    SpillBuffer buffer(store);
    for (int number = 0; number < 40; ++number) {
      media->set_disk_full(random.next() % 2 == 0);
      static_cast<void>(buffer.spill(rows({number})));
      if (random.next() % 8 == 0) static_cast<void>(buffer.flush());
    }
    RowRange page = range(1 + random.next() % 5, random.next() % 60);
    int seen = 0;
    while (true) {
      const std::vector<Row> found = buffer.scan(page).value();
      if (found.empty()) break;
      for (const Row& row : found) EXPECT_EQ(row.key, fmt::format("{:03}", seen++));
      page.begin = found.back().key + '\0';
    }
    EXPECT_EQ(seen, 40);
  }
}

// The checkpoint of a drained queue must not need room for the drained messages.
TEST_F(SpillBufferTest, ACommitTakesAlongWhatIsHeldButNotWhatItErases) {
  media_->set_disk_full(true);
  EXPECT_FALSE(buffer_.spill(rows({1, 2, 3, 4})).has_value());
  media_->set_disk_full(false);
  RowBatch batch;
  batch.erase(kTable, "002");
  batch.erase_range(kTable, "003", "004");
  batch.put(kTable, "005", "value");
  ASSERT_TRUE(buffer_.commit(batch).has_value());
  EXPECT_EQ(keys(store_.scan(range()).value()), "001 004 005 ");
  EXPECT_EQ(keys(buffer_.scan(range()).value()), "001 004 005 ");
  // No row is held any more that could come back.
  ASSERT_TRUE(buffer_.flush().has_value());
  EXPECT_EQ(keys(store_.scan(range()).value()), "001 004 005 ");
}

TEST_F(SpillBufferTest, ACommitThatFindsNoRoomChangesNothing) {
  media_->set_disk_full(true);
  EXPECT_FALSE(buffer_.spill(rows({1, 2})).has_value());
  RowBatch batch;
  batch.erase(kTable, "002");
  EXPECT_FALSE(buffer_.commit(batch).has_value());
  EXPECT_EQ(keys(buffer_.scan(range()).value()), "001 002 ");
}

}  // namespace
}  // namespace baton
