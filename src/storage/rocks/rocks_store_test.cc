#include "storage/rocks/rocks_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "storage/disk/checkpoint_store_contract.h"
#include "storage/rocks/temp_folder.h"

namespace baton {
namespace {

using contract::kIds;
using contract::kMessages;
using contract::kState;

/// A process that dies loses what RocksDB has in memory, and so does closing (it does not flush).
/// rocks_crash_test.cc kills real processes.
template <std::size_t WriteBufferBytes>
class RocksHarness {
 public:
  std::unique_ptr<CheckpointStore> open() {
    auto store = open_rocks_store(
        folder_ / "store", contract::kTables,
        {.write_buffer_bytes = WriteBufferBytes, .write_buffers_bytes_max = 2 * WriteBufferBytes});
    if (!store.has_value()) {
      ADD_FAILURE() << to_string(store.error());
      std::abort();
    }
    return std::move(*store);
  }
  void crash(std::unique_ptr<CheckpointStore> store) { store.reset(); }

 private:
  TempFolder folder_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Rocks, CheckpointStoreContract, RocksHarness<(32U << 20U)>);
// Flushes by itself after every few rows.
INSTANTIATE_TYPED_TEST_SUITE_P(RocksTiny, CheckpointStoreContract, RocksHarness<(64U << 10U)>);

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    files[entry.path().filename()] = content.str();
  }
  return files;
}

void make_store(const std::string& path, std::span<const TableName> tables) {
  auto store = open_rocks_store(path, tables);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  RowBatch batch = contract::ten_byte_rows(20);
  batch.put(kState, "position", "7");
  ASSERT_TRUE((*store)->commit(batch).has_value());
}

TEST(RocksStore, MakesItsFolderAndThoseAboveIt) {
  const TempFolder folder;
  make_store(folder / "a/b/c", contract::kTables);
  EXPECT_TRUE(std::filesystem::exists(folder / "a/b/c/CURRENT"));
}

// An older store gets the tables of a newer version.
TEST(RocksStore, AMissingTableIsMade) {
  const TempFolder folder;
  constexpr std::array<TableName, 2> kOlder{{{kMessages, "messages"}, {kState, "state"}}};
  make_store(folder / "store", kOlder);

  auto store = open_rocks_store(folder / "store", contract::kTables);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  EXPECT_EQ(contract::get(**store, kState, "position"), "7");
  EXPECT_EQ(contract::get(**store, kIds, "x"), "absent");
}

// A table's number is ours and may change; the disk knows only its name.
TEST(RocksStore, TablesAreFoundByName) {
  const TempFolder folder;
  make_store(folder / "store", contract::kTables);
  constexpr Table kRenumbered{200};
  constexpr std::array<TableName, 3> kOther{
      {{kRenumbered, "state"}, {Table{1}, "ids"}, {Table{2}, "messages"}}};

  auto store = open_rocks_store(folder / "store", kOther);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  EXPECT_EQ(contract::get(**store, kRenumbered, "position"), "7");
}

TEST(RocksStore, AnUnknownTableIsRefusedByName) {
  const TempFolder folder;
  make_store(folder / "store", contract::kTables);
  constexpr std::array<TableName, 1> kFewer{{{kState, "state"}}};

  const auto store = open_rocks_store(folder / "store", kFewer);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::store_too_new);
  EXPECT_NE(store.error().text.find("messages"), std::string::npos) << store.error().text;
  EXPECT_NE(store.error().text.find(folder / "store"), std::string::npos) << store.error().text;
}

TEST(RocksStore, AFolderThatIsOpenIsRefused) {
  const TempFolder folder;
  const auto first = open_rocks_store(folder / "store", contract::kTables);
  ASSERT_TRUE(first.has_value());

  const auto second = open_rocks_store(folder / "store", contract::kTables);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::folder_in_use) << second.error().text;
}

TEST(RocksStore, ReadingOnlyChangesNothingInTheFolder) {
  const TempFolder folder;
  make_store(folder / "store", contract::kTables);
  const auto before = files_in(folder / "store");
  {
    auto store = open_rocks_store_read_only(folder / "store", contract::kTables);
    ASSERT_TRUE(store.has_value()) << to_string(store.error());
    EXPECT_EQ(contract::get(**store, kState, "position"), "7");
    EXPECT_EQ(contract::keys(**store, contract::whole(kMessages)).size(), 20U);
    EXPECT_EQ((*store)->commit(RowBatch{}).error().code, Errc::failed_precondition);
    EXPECT_EQ((*store)->spill(RowBatch{}).error().code, Errc::failed_precondition);
  }
  EXPECT_EQ(files_in(folder / "store"), before);
}

TEST(RocksStore, ReadingOnlySeesAnAbsentTableAsEmpty) {
  const TempFolder folder;
  constexpr std::array<TableName, 2> kOlder{{{kMessages, "messages"}, {kState, "state"}}};
  make_store(folder / "store", kOlder);

  const auto store = open_rocks_store_read_only(folder / "store", contract::kTables);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  EXPECT_EQ(contract::get(**store, kIds, "x"), "absent");
  EXPECT_TRUE(contract::keys(**store, contract::whole(kIds)).empty());
  EXPECT_EQ((*store)->table_stats().size(), 3U);
}

TEST(RocksStore, ReadingOnlyDoesNotMakeAStore) {
  const TempFolder folder;
  EXPECT_FALSE(open_rocks_store_read_only(folder / "nowhere", contract::kTables).has_value());
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
  std::filesystem::create_directory(folder / "empty");
  const auto store = open_rocks_store_read_only(folder / "empty", contract::kTables);
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::not_found);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "empty"));
}

TEST(RocksStore, StatsNameEachTableWithItsRows) {
  const TempFolder folder;
  make_store(folder / "store", contract::kTables);
  const auto store = open_rocks_store_read_only(folder / "store", contract::kTables);
  ASSERT_TRUE(store.has_value());

  const std::vector<TableStats> stats = (*store)->table_stats();
  ASSERT_EQ(stats.size(), 3U);
  EXPECT_EQ(stats[0].name, "messages");
  EXPECT_EQ(stats[0].rows_estimate, 20U);
  EXPECT_GT(stats[0].bytes, 100U);
  EXPECT_EQ(stats[1].name, "ids");
  EXPECT_EQ(stats[1].rows_estimate, 0U);
}

// The order in which messages of a queue are deleted: from the front, over many commits.
TEST(RocksStore, ADrainedQueueIsEmptyAndStaysSo) {
  const TempFolder folder;
  const RocksOptions tiny{.write_buffer_bytes = 64U << 10U, .write_buffers_bytes_max = 128U << 10U};
  auto store = open_rocks_store(folder / "store", contract::kTables, tiny);
  ASSERT_TRUE(store.has_value());
  for (int i = 0; i < 10; ++i) {
    RowBatch batch;
    for (int j = 0; j < 100; ++j) {
      batch.put(kMessages, std::to_string(1000000 + 100 * i + j), std::string(1024, 'm'));
    }
    ASSERT_TRUE((*store)->spill(batch).has_value());
  }
  CheckpointStore::Range range = contract::whole(kMessages);
  range.rows_max = 70;
  std::size_t drained = 0;
  for (auto keys = contract::keys(**store, range); !keys.empty();
       keys = contract::keys(**store, range)) {
    RowBatch batch;
    for (const std::string& key : keys) batch.erase(kMessages, key);
    ASSERT_TRUE((*store)->commit(batch).has_value());
    drained += keys.size();
    range.begin = keys.back() + std::string(1, '\0');
  }
  EXPECT_EQ(drained, 1000U);
  store->reset();
  store = open_rocks_store(folder / "store", contract::kTables, tiny);
  ASSERT_TRUE(store.has_value());
  EXPECT_TRUE(contract::keys(**store, contract::whole(kMessages)).empty());
}

// RocksDB moves a file that overlaps no other down its levels unchanged, and leaves it there.
TEST(RocksStore, KeysThatComeOneByOneDoNotMakeAFileEach) {
  const TempFolder folder;
  auto store = open_rocks_store(folder / "store", contract::kTables);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  constexpr int kCommits = 150;
  for (int i = 0; i < kCommits; ++i) {
    RowBatch batch;
    batch.put(kIds, fmt::format("{:06}", i), "value");
    ASSERT_TRUE((*store)->commit(batch).has_value());
  }
  const auto files = [&folder] {
    return std::ranges::count_if(
        std::filesystem::directory_iterator(folder / "store"),
        [](const auto& entry) { return entry.path().extension() == ".sst"; });
  };
  // RocksDB merges them on a thread of its own, and takes its time on a busy machine.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (files() >= 50 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_LT(files(), 50);
  for (int i = 0; i < kCommits; ++i) {
    EXPECT_EQ(contract::get(**store, kIds, fmt::format("{:06}", i)), "value");
  }
}

}  // namespace
}  // namespace baton
