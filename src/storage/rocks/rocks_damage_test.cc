#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/disk/checkpoint_store_contract.h"
#include "storage/rocks/rocks_store.h"
#include "storage/rocks/temp_folder.h"

namespace baton {
namespace {

namespace fs = std::filesystem;
using contract::kMessages;

/// 200 bytes that follow from the key and do not compress.
std::string value_of(const std::string& key) {
  Random random = Random(1).fork(key);
  std::string value(200, '\0');
  for (char& byte : value) byte = static_cast<char>(random.next());
  return value;
}

class RocksDamage : public testing::Test {
 public:
  void SetUp() override {
    auto store = open_rocks_store(path(), contract::kTables);
    ASSERT_TRUE(store.has_value()) << to_string(store.error());
    RowBatch batch;
    for (const TableName& table : contract::kTables) {
      for (int i = 1000; i < 1400; ++i) {
        batch.put(table.table, std::to_string(i), value_of(std::to_string(i)));
      }
    }
    ASSERT_TRUE((*store)->commit(batch).has_value());
  }

  std::string path() { return folder_ / "store"; }

  std::vector<fs::path> files(const std::string& part) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path().filename().string().find(part) != std::string::npos) {
        found.push_back(entry.path());
      }
    }
    EXPECT_FALSE(found.empty()) << part;
    return found;
  }

  static void write(const fs::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }

  /// Opening, for writing and for reading only, must fail with `code` and name the folder.
  void expect_refused(Errc code) {
    const auto reader = open_rocks_store_read_only(path(), contract::kTables);
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().code, code) << to_string(reader.error());
    const auto store = open_rocks_store(path(), contract::kTables);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, code) << to_string(store.error());
    EXPECT_NE(store.error().text.find(path()), std::string::npos) << store.error().text;
  }

 private:
  TempFolder folder_;
};

TEST_F(RocksDamage, GarbageInCurrentIsReported) {
  write(path() + "/CURRENT", std::string("\x00\xff garbage", 10));
  expect_refused(Errc::store_corrupt);
}

TEST_F(RocksDamage, AnEmptyCurrentIsReported) {
  write(path() + "/CURRENT", "");
  expect_refused(Errc::store_corrupt);
}

TEST_F(RocksDamage, ACurrentThatNamesNoFileIsReported) {
  write(path() + "/CURRENT", "MANIFEST-999999\n");
  expect_refused(Errc::store_corrupt);
}

// RocksDB would make a new, empty store there and delete the table files.
TEST_F(RocksDamage, AMissingCurrentIsNoNewStore) {
  fs::remove(path() + "/CURRENT");
  const std::size_t tables = files(".sst").size();
  expect_refused(Errc::store_corrupt);
  EXPECT_EQ(files(".sst").size(), tables);
}

TEST_F(RocksDamage, GarbageInTheManifestIsReported) {
  write(files("MANIFEST").front(), std::string(5000, 'x'));
  expect_refused(Errc::store_corrupt);
}

TEST_F(RocksDamage, AnEmptyManifestIsReported) {
  write(files("MANIFEST").front(), "");
  expect_refused(Errc::store_corrupt);
}

TEST_F(RocksDamage, AMissingTableFileIsReportedByName) {
  const fs::path gone = files(".sst").front();
  fs::remove(gone);
  expect_refused(Errc::store_corrupt);
  const auto store = open_rocks_store(path(), contract::kTables);
  EXPECT_NE(store.error().text.find(gone.stem()), std::string::npos) << store.error().text;
}

TEST_F(RocksDamage, AShortenedTableFileIsReported) {
  const fs::path file = files(".sst").front();
  fs::resize_file(file, fs::file_size(file) - 1);
  expect_refused(Errc::store_corrupt);
}

TEST_F(RocksDamage, AFlippedBitInARowIsFoundWhenReadAndNamesTheFile) {
  for (const fs::path& file : files(".sst")) {
    if (fs::file_size(file) < 50000) continue;  // RocksDB's own.
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(60);
    bytes.put('\x55');
  }
  const auto store = open_rocks_store(path(), contract::kTables);
  ASSERT_TRUE(store.has_value()) << to_string(store.error());
  const auto rows = (*store)->scan(contract::whole(kMessages));
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().code, Errc::store_corrupt) << to_string(rows.error());
  EXPECT_NE(rows.error().text.find(".sst"), std::string::npos) << rows.error().text;
  const auto row = (*store)->get(kMessages, "1000");
  ASSERT_FALSE(row.has_value());
  EXPECT_EQ(row.error().code, Errc::store_corrupt);
}

// Garbage in any file gives an error, not an abort.
TEST_F(RocksDamage, GarbageInAnyFileEndsNoProcess) {
  const std::string copy = path() + "-copy";
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    fs::remove_all(copy);
    fs::copy(path(), copy);
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(copy)) all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    const fs::path& victim = all[random.below(all.size())];
    const std::uint64_t size = fs::file_size(victim);
    if (random.chance(1, 4)) {
      fs::resize_file(victim, random.below(size + 1));
    } else {
      std::fstream bytes(victim, std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekp(static_cast<std::streamoff>(random.below(size + 1)));
      for (std::uint64_t i = random.below(40); i < 40; ++i) {
        bytes.put(static_cast<char>(random.next()));
      }
    }
    const auto store = open_rocks_store(copy, contract::kTables);
    if (!store.has_value()) continue;
    for (const TableName& table : contract::kTables) {
      const auto rows = (*store)->scan(contract::whole(table.table));
      if (!rows.has_value()) continue;
      for (const Row& row : *rows) EXPECT_EQ(row.value, value_of(row.key)) << victim;
    }
  }
}

TEST_F(RocksDamage, AFileInPlaceOfTheFolderIsReported) {
  const std::string file = path() + "-file";
  write(file, "not a folder");
  for (const std::string& bad : {file, file + "/below"}) {
    const auto store = open_rocks_store(bad, contract::kTables);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, Errc::io_error) << to_string(store.error());
    EXPECT_NE(store.error().text.find(bad), std::string::npos) << store.error().text;
    EXPECT_FALSE(open_rocks_store_read_only(bad, contract::kTables).has_value());
  }
}

/// Root may write anywhere: acts as another user while in scope.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0) { EXPECT_TRUE(!was_root_ || ::seteuid(65534) == 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() { EXPECT_TRUE(!was_root_ || ::seteuid(0) == 0); }

 private:
  bool was_root_;
};

TEST_F(RocksDamage, AFolderThatCannotBeWrittenIsReportedButCanBeRead) {
  for (const fs::path& each : {fs::path(path()), fs::path(path()).parent_path()}) {
    ASSERT_EQ(::chmod(each.c_str(), 0555), 0);
  }
  {
    const AsNobody nobody;
    for (const std::string& bad : {path(), path() + "-new"}) {
      const auto store = open_rocks_store(bad, contract::kTables);
      ASSERT_FALSE(store.has_value());
      EXPECT_EQ(store.error().code, Errc::io_error) << to_string(store.error());
      EXPECT_NE(store.error().text.find(bad), std::string::npos) << store.error().text;
    }
    const auto reader = open_rocks_store_read_only(path(), contract::kTables);
    ASSERT_TRUE(reader.has_value()) << to_string(reader.error());
    EXPECT_EQ(contract::get(**reader, kMessages, "1000"), value_of("1000"));
  }
  for (const fs::path& each : {fs::path(path()), fs::path(path()).parent_path()}) {
    ASSERT_EQ(::chmod(each.c_str(), 0755), 0);
  }
}

}  // namespace
}  // namespace baton
