#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/system_clock.h>

#include "base/random.h"
#include "storage/disk/checkpoint_store_contract.h"
#include "storage/rocks/rocks_store.h"
#include "storage/rocks/temp_folder.h"

namespace baton {
namespace {

using contract::kIds;
using contract::kMessages;
using contract::kState;

constexpr std::int64_t kReserve = 64 << 10U;
constexpr std::int64_t kNever = std::int64_t{1} << 50U;

/// How many more bytes the disk accepts.
struct Space {
  std::atomic<std::int64_t> left = std::int64_t{1} << 40U;
  std::atomic<bool> lists_refused = false;  // Writes of manifests fail, whatever space is left.
  /// After this many more bytes another process takes all that is left.
  std::atomic<std::int64_t> before_others = kNever;

  rocksdb::IOStatus take(std::size_t bytes) {
    const auto wanted = static_cast<std::int64_t>(bytes);
    std::int64_t now = left;
    while (now >= wanted) {
      if (!left.compare_exchange_weak(now, now - wanted)) continue;
      if ((before_others -= wanted) < 0) left = 0;
      return rocksdb::IOStatus::OK();
    }
    return rocksdb::IOStatus::NoSpace("No space left on device", "simulated");
  }
};

class SmallFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  SmallFile(const std::string& path, std::unique_ptr<rocksdb::FSWritableFile> file,
            std::shared_ptr<Space> space)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(path),
        is_list_(path.find("/MANIFEST-") != std::string::npos),
        space_(std::move(space)) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus taken = take(bytes.size());
    return taken.ok() ? FSWritableFileOwnerWrapper::Append(bytes, options, debug) : taken;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus taken = take(bytes.size());
    if (!taken.ok()) return taken;
    return FSWritableFileOwnerWrapper::Append(bytes, options, verification, debug);
  }
  rocksdb::IOStatus Allocate(std::uint64_t, std::uint64_t bytes, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    if (space_->left >= static_cast<std::int64_t>(bytes)) return rocksdb::IOStatus::OK();
    return rocksdb::IOStatus::NoSpace("No space left on device", "simulated");
  }
  rocksdb::IOStatus Truncate(std::uint64_t size, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
    const std::uint64_t before = std::filesystem::file_size(path_);
    rocksdb::IOStatus status = FSWritableFileOwnerWrapper::Truncate(size, options, debug);
    if (status.ok()) space_->left += static_cast<std::int64_t>(before - size);
    return status;
  }

 private:
  rocksdb::IOStatus take(std::size_t bytes) {
    if (is_list_ && space_->lists_refused) return rocksdb::IOStatus::NoSpace("simulated");
    return space_->take(bytes);
  }

  std::string path_;
  bool is_list_;
  std::shared_ptr<Space> space_;
};

class SmallDisk final : public rocksdb::FileSystemWrapper {
 public:
  explicit SmallDisk(std::shared_ptr<Space> space)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), space_(std::move(space)) {}

  [[nodiscard]] const char* Name() const override { return "SmallDisk"; }
  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(name, options, &file, debug);
    if (status.ok()) *result = std::make_unique<SmallFile>(name, std::move(file), space_);
    return status;
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    rocksdb::IOStatus status = FileSystemWrapper::ReopenWritableFile(name, options, &file, debug);
    if (status.ok()) *result = std::make_unique<SmallFile>(name, std::move(file), space_);
    return status;
  }
  rocksdb::IOStatus GetFreeSpace(const std::string&, const rocksdb::IOOptions&,
                                 std::uint64_t* free_bytes, rocksdb::IODebugContext*) override {
    *free_bytes = static_cast<std::uint64_t>(space_->left.load());
    return rocksdb::IOStatus::OK();
  }

 private:
  std::shared_ptr<Space> space_;
};

/// RocksDB sleeps for a second when a flush fails because the store closes; this clock does not.
class HastyClock final : public rocksdb::SystemClockWrapper {
 public:
  HastyClock() : SystemClockWrapper(rocksdb::SystemClock::Default()) {}
  [[nodiscard]] const char* Name() const override { return "HastyClock"; }
  void SleepForMicroseconds(int) override {}
};

class SmallDiskEnv final : public rocksdb::EnvWrapper {
 public:
  explicit SmallDiskEnv(const std::shared_ptr<Space>& space) : EnvWrapper(rocksdb::Env::Default()) {
    file_system_ = std::make_shared<SmallDisk>(space);
    system_clock_ = std::make_shared<HastyClock>();
  }
};

class RocksFullDisk : public testing::Test {
 public:
  RocksFullDisk() : space(std::make_shared<Space>()), env_(space) {}

  std::string path(const std::string& name) { return folder_ / name; }
  Result<std::unique_ptr<RocksStore>> try_open(const std::string& name) {
    return open_rocks_store(path(name), contract::kTables,
                            {.cache_bytes = 1U << 20U,
                             .write_buffer_bytes = 64U << 10U,
                             .write_buffers_bytes_max = 128U << 10U,
                             .disk_reserve_bytes = kReserve,
                             .env = &env_});
  }
  std::unique_ptr<RocksStore> open(const std::string& name) {
    auto store = try_open(name);
    if (!store.has_value()) {
      ADD_FAILURE() << to_string(store.error());
      std::abort();
    }
    return std::move(*store);
  }
  void make_space() {
    space->before_others = kNever;
    space->left = std::int64_t{1} << 40U;
  }

  /// Bytes that no compression makes smaller.
  std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.next());
    return bytes;
  }
  static RowBatch position(const std::string& text) {
    RowBatch batch;
    for (const Table table : {kMessages, kIds, kState}) batch.put(table, "position", text);
    return batch;
  }
  static std::string position_in(const CheckpointStore& store) {
    const std::string state = contract::get(store, kState, "position");
    EXPECT_EQ(contract::get(store, kMessages, "position"), state);
    EXPECT_EQ(contract::get(store, kIds, "position"), state);
    return state;
  }

  /// Commits with space to spare: files that wait for space need a moment to notice it.
  static Status commit_with_space(CheckpointStore& store, const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Status status = store.commit(position(text));
    while (!status.has_value() && std::chrono::steady_clock::now() < deadline) {
      EXPECT_EQ(status.error().code, Errc::disk_full) << to_string(status.error());
      std::this_thread::yield();
      status = store.commit(position(text));
    }
    return status;
  }

  std::shared_ptr<Space> space;

 private:
  TempFolder folder_;
  SmallDiskEnv env_;
  Random random_{1};
};

TEST_F(RocksFullDisk, CommitsWorkAgainWhenSpaceIsBack) {
  auto store = open("store");
  ASSERT_TRUE(store->commit(position("1")).has_value());
  space->left = kReserve;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Status refused = store->commit(position("2"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::disk_full) << to_string(refused.error());
  }
  make_space();
  for (const char* text : {"3", "4"}) {
    const Status status = commit_with_space(*store, text);
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
  }
  store.reset();
  EXPECT_EQ(position_in(*open("store")), "4");
}

// Here a full write buffer meets the full disk, in RocksDB's own thread.
TEST_F(RocksFullDisk, RowsSpilledOnAFullDiskAreKeptAndCommittedLater) {
  auto store = open("store");
  ASSERT_TRUE(store->commit(position("1")).has_value());
  space->left = kReserve + 20000;
  int spilled = 0;
  Status status;
  for (; spilled < 10000 && status.has_value(); ++spilled) {
    RowBatch batch;
    batch.put(kMessages, "spill" + std::to_string(10000 + spilled), std::string(1000, 's'));
    status = store->spill(batch);
  }
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::disk_full) << to_string(status.error());
  --spilled;  // The last one was refused.
  EXPECT_EQ(position_in(*store), "1") << "a full disk is no reason not to read";

  make_space();
  status = commit_with_space(*store, "2");
  ASSERT_TRUE(status.has_value()) << to_string(status.error());
  store.reset();
  store = open("store");
  EXPECT_EQ(position_in(*store), "2");
  EXPECT_EQ(contract::keys(*store, contract::whole(kMessages)).size(),
            static_cast<std::size_t>(spilled) + 1);
}

// The disk may be full for any of a commit's files, or for a compaction that follows it.
TEST_F(RocksFullDisk, WhereverTheDiskFillsUpACommitIsWholeOrAbsent) {
  auto store = open("store");
  int number = 0;
  int refused = 0;
  for (std::int64_t room = 0;; room += 300) {
    const Status before = commit_with_space(*store, std::to_string(++number));
    ASSERT_TRUE(before.has_value()) << room << ": " << to_string(before.error());
    space->left = kReserve + room;
    const bool done = store->commit(position(std::to_string(++number))).has_value();
    if (refused % 2 == 0) store.reset();  // As by a crash; otherwise the same process goes on.
    make_space();
    if (store == nullptr) store = open("store");
    const std::string found = position_in(*store);
    EXPECT_TRUE(found == std::to_string(number) || (!done && found == std::to_string(number - 1)))
        << found << " with room for " << room;
    if (done) break;
    ++refused;
  }
  EXPECT_GT(refused, 10);
  ASSERT_TRUE(commit_with_space(*store, "end").has_value());
  store.reset();
  EXPECT_EQ(position_in(*open("store")), "end");
}

// If another process takes the reserve, the manifest does not fit. RocksDB does not survive that,
// and the store fails instead of hanging; the next process finds all of the commit or nothing.
TEST_F(RocksFullDisk, AListOfFilesThatDoesNotFitEndsTheStoreButLosesNothing) {
  for (int life = 0; life < 2; ++life) {
    auto store = open("store");
    ASSERT_TRUE(store->commit(position("1")).has_value());
    space->lists_refused = true;
    const Status refused = store->commit(position("2"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::io_error) << to_string(refused.error());
    space->lists_refused = false;
    EXPECT_EQ(position_in(*store), "2") << "reading goes on";
    EXPECT_EQ(store->commit(position("3")).error().code, Errc::io_error);
    EXPECT_EQ(store->spill(position("3")).error().code, Errc::io_error);
    store.reset();
    const std::string found = position_in(*open("store"));
    EXPECT_TRUE(found == "1" || found == "2") << found;
  }
}

// No reserve of the disk's free space helps here: the space goes between the look and the write.
TEST_F(RocksFullDisk, WhenOthersTakeTheDiskInTheMiddleOfAWriteTheStoreWaits) {
  auto store = open("store");
  int refused = 0;
  bool done = false;
  for (std::int64_t cut = 0; !done; cut += 20'000) {
    RowBatch rows = position(std::to_string(cut));
    for (int i = 0; i < 20; ++i) {
      rows.put(kMessages, "row" + std::to_string(i), random_bytes(20'000));
    }
    space->before_others = cut;
    const Status committed = store->commit(rows);
    done = committed.has_value() && space->left > 0;
    if (!committed.has_value()) {
      ++refused;
      ASSERT_EQ(committed.error().code, Errc::disk_full) << to_string(committed.error());
    }
    make_space();
    const Status again = commit_with_space(*store, std::to_string(cut));
    ASSERT_TRUE(again.has_value()) << cut << ": " << to_string(again.error());
  }
  EXPECT_GT(refused, 10);
  store.reset();
  EXPECT_EQ(contract::keys(*open("store"), contract::whole(kMessages)).size(), 21U);
}

TEST_F(RocksFullDisk, OpensWithNothingLeftAgainAndAgain) {
  ASSERT_TRUE(open("store")->commit(position("1")).has_value());
  space->left = 0;
  for (int life = 0; life < 10; ++life) EXPECT_EQ(position_in(*open("store")), "1");
  make_space();
  ASSERT_TRUE(commit_with_space(*open("store"), "2").has_value());
  space->left = 0;
  EXPECT_EQ(position_in(*open("store")), "2");
}

TEST_F(RocksFullDisk, OpeningOnAFullDiskSaysSo) {
  space->left = 0;
  TempFolder folder;
  SmallDiskEnv env(space);
  const auto store = open_rocks_store(folder / "store", contract::kTables, {.env = &env});
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::disk_full) << to_string(store.error());
  EXPECT_EQ(store.error().text,
            "the disk of " + folder / "store" +
                " is full: opening the store takes 1024 KiB, and 0 KiB are left (free that much, "
                "and start again; nothing is lost)");
}

// A store of a former version has no reserve file, and the disk is full when it gets one.
TEST_F(RocksFullDisk, WithoutItsReserveAStoreThatFindsNoRoomIsRefusedAndLosesNothing) {
  ASSERT_TRUE(open("store")->commit(position("1")).has_value());
  std::filesystem::remove(path("store") + "/RESERVE");
  space->left = 500'000;
  const auto refused = try_open("store");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::disk_full) << to_string(refused.error());
  EXPECT_NE(refused.error().text.find(path("store")), std::string::npos);
  make_space();
  EXPECT_EQ(position_in(*open("store")), "1");
}

}  // namespace
}  // namespace baton
