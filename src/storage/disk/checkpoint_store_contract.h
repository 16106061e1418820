#pragma once

// For tests only: what every CheckpointStore must do, run on each implementation by
//
//   INSTANTIATE_TYPED_TEST_SUITE_P(Fake, CheckpointStoreContract, FakeHarness);
//
// A harness is default-constructible, holds one medium, and has
//   std::unique_ptr<CheckpointStore> open();                  // (Re)opens the medium.
//   void crash(std::unique_ptr<CheckpointStore> store);       // The process of `store` dies.
// and opens contract::kTables.

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "storage/disk/checkpoint_store.h"

namespace baton::contract {

inline constexpr Table kMessages{1};
inline constexpr Table kIds{2};
inline constexpr Table kState{3};
inline constexpr std::array<TableName, 3> kTables{
    {{kMessages, "messages"}, {kIds, "ids"}, {kState, "state"}}};

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// Above every key the suite uses.
inline std::string key_max() { return std::string(64, '\xff'); }

inline std::string get(const CheckpointStore& store, Table table, std::string_view key) {
  const auto value = store.get(table, key);
  if (!value.has_value()) return "error: " + to_string(value.error());
  return value->value_or("absent");
}

/// The keys of a scan, or the error.
inline std::vector<std::string> keys(const CheckpointStore& store,
                                     const CheckpointStore::Range& range) {
  const auto rows = store.scan(range);
  if (!rows.has_value()) return {"error: " + to_string(rows.error())};
  std::vector<std::string> result;
  for (const Row& row : *rows) result.push_back(row.key);
  return result;
}

inline CheckpointStore::Range whole(Table table) {
  return {
      .table = table, .begin = "", .end = key_max(), .rows_max = kNoLimit, .bytes_max = kNoLimit};
}

using Keys = std::vector<std::string>;

/// `count` rows "row000", "row001" ... of 10 bytes in kMessages.
inline RowBatch ten_byte_rows(int count) {
  RowBatch batch;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 3 - number.size(), '0');
    batch.put(kMessages, "row" + number, "1234");
  }
  return batch;
}

}  // namespace baton::contract

namespace baton {

template <class Harness>
class CheckpointStoreContract : public testing::Test {
 public:
  CheckpointStoreContract() : store(harness.open()) {}

  void reopen() {
    store.reset();
    store = harness.open();
  }
  void crash() {
    harness.crash(std::move(store));
    store = harness.open();
  }
  void commit(const RowBatch& batch) {
    const Status status = store->commit(batch);
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
  }
  void spill(const RowBatch& batch) {
    const Status status = store->spill(batch);
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
  }
  std::string get(Table table, std::string_view key) { return contract::get(*store, table, key); }
  std::vector<std::string> keys(const CheckpointStore::Range& range) {
    return contract::keys(*store, range);
  }

  Harness harness;
  std::unique_ptr<CheckpointStore> store;
};

TYPED_TEST_SUITE_P(CheckpointStoreContract);

TYPED_TEST_P(CheckpointStoreContract, ANewStoreIsEmpty) {
  EXPECT_EQ(this->get(contract::kState, "position"), "absent");
  EXPECT_TRUE(this->keys(contract::whole(contract::kMessages)).empty());
}

TYPED_TEST_P(CheckpointStoreContract, ACommitIsReadableInAllItsTables) {
  RowBatch batch;
  batch.put(contract::kMessages, "m1", "hello");
  batch.put(contract::kIds, "i1", "m1");
  batch.put(contract::kState, "position", "7");
  this->commit(batch);

  EXPECT_EQ(this->get(contract::kMessages, "m1"), "hello");
  EXPECT_EQ(this->get(contract::kIds, "i1"), "m1");
  EXPECT_EQ(this->get(contract::kState, "position"), "7");
  EXPECT_EQ(this->get(contract::kIds, "m1"), "absent") << "tables do not share keys";
}

// A delta may hold the creation of a row and its removal; the order decides which one stands.
TYPED_TEST_P(CheckpointStoreContract, ChangesApplyInTheOrderOfTheBatch) {
  RowBatch batch;
  batch.put(contract::kMessages, "born-and-gone", "x");
  batch.erase(contract::kMessages, "born-and-gone");
  batch.erase(contract::kMessages, "gone-and-born");
  batch.put(contract::kMessages, "gone-and-born", "y");
  batch.put(contract::kMessages, "twice", "first");
  batch.put(contract::kMessages, "twice", "second");
  this->commit(batch);

  EXPECT_EQ(this->get(contract::kMessages, "born-and-gone"), "absent");
  EXPECT_EQ(this->get(contract::kMessages, "gone-and-born"), "y");
  EXPECT_EQ(this->get(contract::kMessages, "twice"), "second");
}

TYPED_TEST_P(CheckpointStoreContract, ErasingARangeSparesWhatTheBatchPutsAfterIt) {
  RowBatch old_rows;
  for (const char* key : {"a", "b", "c", "d"}) old_rows.put(contract::kMessages, key, "old");
  old_rows.put(contract::kIds, "b", "other table");
  this->commit(old_rows);

  RowBatch batch;
  batch.put(contract::kMessages, "bb", "put before the range goes");
  batch.erase_range(contract::kMessages, "b", "d");
  batch.put(contract::kMessages, "c", "new");
  this->commit(batch);

  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)), (contract::Keys{"a", "c", "d"}));
  EXPECT_EQ(this->get(contract::kMessages, "b"), "absent");
  EXPECT_EQ(this->get(contract::kMessages, "c"), "new");
  EXPECT_EQ(this->get(contract::kIds, "b"), "other table");
}

TYPED_TEST_P(CheckpointStoreContract, ARangeThatEndsBeforeItBeginsIsEmpty) {
  RowBatch batch;
  batch.put(contract::kMessages, "b", "x");
  batch.erase_range(contract::kMessages, "c", "a");
  batch.erase_range(contract::kMessages, "b", "b");
  this->commit(batch);

  EXPECT_EQ(this->get(contract::kMessages, "b"), "x");
  CheckpointStore::Range range = contract::whole(contract::kMessages);
  range.begin = "c";
  range.end = "a";
  EXPECT_TRUE(this->keys(range).empty());
}

TYPED_TEST_P(CheckpointStoreContract, ErasingWhatIsNotThereIsNothing) {
  RowBatch batch;
  batch.erase(contract::kMessages, "nobody");
  batch.erase_range(contract::kMessages, "n", "o");
  this->commit(batch);
  EXPECT_TRUE(this->keys(contract::whole(contract::kMessages)).empty());
}

TYPED_TEST_P(CheckpointStoreContract, ScansAreInOrderOfUnsignedBytes) {
  using std::string_literals::operator""s;
  const contract::Keys sorted{""s,     "\0"s, "\0\0"s, "\0\xff"s, "\x01"s, "a"s,      "a\0"s,
                              "a\0b"s, "ab"s, "\x7f"s, "\x80"s,   "\xff"s, "\xff\0"s, "\xff\xff"s};
  RowBatch batch;
  for (auto key = sorted.rbegin(); key != sorted.rend(); ++key) {
    batch.put(contract::kMessages, *key, *key);
  }
  this->commit(batch);

  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)), sorted);
  for (const std::string& key : sorted) EXPECT_EQ(this->get(contract::kMessages, key), key);
  CheckpointStore::Range range = contract::whole(contract::kMessages);
  range.begin = "a\0"s;
  range.end = "\x80"s;
  EXPECT_EQ(this->keys(range), (contract::Keys{"a\0"s, "a\0b"s, "ab"s, "\x7f"s}));
}

TYPED_TEST_P(CheckpointStoreContract, ErasingARangeSparesItsEndAmongBinaryKeys) {
  using std::string_literals::operator""s;
  RowBatch batch;
  for (const std::string& key : {"\x01\xff"s, "\x01\xff\xff"s, "\x02"s, "\x02\0"s}) {
    batch.put(contract::kMessages, key, "x");
  }
  batch.erase_range(contract::kMessages, "\x01"s, "\x02"s);
  this->commit(batch);
  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)), (contract::Keys{"\x02"s, "\x02\0"s}));
}

TYPED_TEST_P(CheckpointStoreContract, AScanStopsAtItsRows) {
  this->commit(contract::ten_byte_rows(20));
  CheckpointStore::Range range = contract::whole(contract::kMessages);
  range.rows_max = 3;
  EXPECT_EQ(this->keys(range), (contract::Keys{"row000", "row001", "row002"}));
  range.begin = this->keys(range).back() + std::string(1, '\0');
  EXPECT_EQ(this->keys(range), (contract::Keys{"row003", "row004", "row005"}));
  range.begin = "row018";
  EXPECT_EQ(this->keys(range), (contract::Keys{"row018", "row019"}));
}

TYPED_TEST_P(CheckpointStoreContract, AScanStopsAtItsBytes) {
  this->commit(contract::ten_byte_rows(20));
  CheckpointStore::Range range = contract::whole(contract::kMessages);
  range.bytes_max = 30;
  EXPECT_EQ(this->keys(range).size(), 3U);
  range.bytes_max = 39;
  EXPECT_EQ(this->keys(range).size(), 3U);
}

// Otherwise a row larger than the limit would stop its queue for ever.
TYPED_TEST_P(CheckpointStoreContract, AScanAlwaysReturnsOneRow) {
  this->commit(contract::ten_byte_rows(20));
  CheckpointStore::Range range = contract::whole(contract::kMessages);
  range.bytes_max = 1;
  EXPECT_EQ(this->keys(range), (contract::Keys{"row000"}));
  range.rows_max = 0;
  range.bytes_max = 0;
  EXPECT_EQ(this->keys(range), (contract::Keys{"row000"}));
}

TYPED_TEST_P(CheckpointStoreContract, SpilledRowsAreReadableAtOnce) {
  RowBatch batch;
  batch.put(contract::kMessages, "m1", "hello");
  this->spill(batch);
  EXPECT_EQ(this->get(contract::kMessages, "m1"), "hello");
  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)), (contract::Keys{"m1"}));
}

TYPED_TEST_P(CheckpointStoreContract, CommitsSurviveReopening) {
  RowBatch batch;
  batch.put(contract::kMessages, "m1", std::string(100000, 'x'));
  batch.put(contract::kState, "position", "");
  this->commit(batch);
  RowBatch erasure;
  erasure.put(contract::kIds, "i1", "");
  erasure.erase(contract::kState, "nothing");
  this->commit(erasure);

  this->reopen();

  EXPECT_EQ(this->get(contract::kMessages, "m1"), std::string(100000, 'x'));
  EXPECT_EQ(this->get(contract::kState, "position"), "");
  EXPECT_EQ(this->get(contract::kIds, "i1"), "");
}

TYPED_TEST_P(CheckpointStoreContract, CommitsSurviveACrash) {
  this->commit(contract::ten_byte_rows(20));
  RowBatch erasure;
  erasure.erase_range(contract::kMessages, "row005", "row015");
  erasure.erase(contract::kMessages, "row000");
  this->commit(erasure);

  this->crash();

  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)),
            (contract::Keys{"row001", "row002", "row003", "row004", "row015", "row016", "row017",
                            "row018", "row019"}));
}

// The journal before a commit is dropped, and the spilled rows with it.
TYPED_TEST_P(CheckpointStoreContract, ACommitMakesDurableWhatWasSpilledBeforeIt) {
  this->spill(contract::ten_byte_rows(20));
  this->commit(RowBatch{});
  this->crash();
  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)).size(), 20U);
}

TYPED_TEST_P(CheckpointStoreContract, ACrashLosesAtMostWhatWasSpilledAfterTheCommit) {
  RowBatch position;
  position.put(contract::kState, "position", "1");
  this->commit(position);
  for (int life = 0; life < 5; ++life) {
    this->spill(contract::ten_byte_rows(20));
    this->crash();
    EXPECT_EQ(this->get(contract::kState, "position"), "1");
    for (const std::string& key : this->keys(contract::whole(contract::kMessages))) {
      EXPECT_EQ(this->get(contract::kMessages, key), "1234");
    }
  }
  this->spill(contract::ten_byte_rows(20));
  EXPECT_EQ(this->keys(contract::whole(contract::kMessages)).size(), 20U);
}

REGISTER_TYPED_TEST_SUITE_P(CheckpointStoreContract, ANewStoreIsEmpty,
                            ACommitIsReadableInAllItsTables, ChangesApplyInTheOrderOfTheBatch,
                            ErasingARangeSparesWhatTheBatchPutsAfterIt,
                            ARangeThatEndsBeforeItBeginsIsEmpty, ErasingWhatIsNotThereIsNothing,
                            ScansAreInOrderOfUnsignedBytes,
                            ErasingARangeSparesItsEndAmongBinaryKeys, AScanStopsAtItsRows,
                            AScanStopsAtItsBytes, AScanAlwaysReturnsOneRow,
                            SpilledRowsAreReadableAtOnce, CommitsSurviveReopening,
                            CommitsSurviveACrash, ACommitMakesDurableWhatWasSpilledBeforeIt,
                            ACrashLosesAtMostWhatWasSpilledAfterTheCommit);

}  // namespace baton
