// A disk that fills up in the middle of a write, as a real disk does: the fake disk refuses a write
// that does not fit as a whole.

#include <gtest/gtest.h>

#include "core/stream/batch_samples.h"
#include "sim/fake_disk.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

using batch_samples::kNow;
using batch_samples::plain_batch;

/// How many more bytes may be written.
struct Room {
  std::uint64_t bytes = ~std::uint64_t{0};
};

class FillingFile final : public File {
 public:
  FillingFile(std::unique_ptr<File> file, Room& room) : file_(std::move(file)), room_(room) {}

  Status write_at(std::uint64_t offset, std::string_view bytes) override {
    if (bytes.size() <= room_.bytes) {
      room_.bytes -= bytes.size();
      return file_->write_at(offset, bytes);
    }
    BATON_TRY_STATUS(file_->write_at(offset, bytes.substr(0, room_.bytes)));
    room_.bytes = 0;
    return Error{Errc::disk_full, "no room for the rest"};
  }
  Result<std::string> read_at(std::uint64_t offset, std::uint64_t count) const override {
    return file_->read_at(offset, count);
  }
  Status sync() override { return file_->sync(); }
  Status allocate(std::uint64_t size) override { return file_->allocate(size); }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }
  Result<std::uint64_t> size() const override { return file_->size(); }

 private:
  std::unique_ptr<File> file_;
  Room& room_;
};

class FillingDisk final : public Disk {
 public:
  explicit FillingDisk(std::uint64_t seed) : disk_(seed) {}

  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return wrap(disk_.open(path));
  }
  Result<std::unique_ptr<File>> create(const std::string& path) override {
    return wrap(disk_.create(path));
  }
  Result<std::vector<std::string>> list(const std::string& folder) const override {
    return disk_.list(folder);
  }
  Status make_folder(const std::string& folder) override { return disk_.make_folder(folder); }
  Status rename(const std::string& from, const std::string& to) override {
    return disk_.rename(from, to);
  }
  Status remove(const std::string& path) override { return disk_.remove(path); }
  Status sync_folder(const std::string& folder) override { return disk_.sync_folder(folder); }
  Result<std::uint64_t> free_bytes(const std::string& folder) const override {
    return disk_.free_bytes(folder);
  }
  Result<std::uint64_t> random_number() override { return disk_.random_number(); }

  FakeDisk& fake() { return disk_; }
  Room& room() { return room_; }

 private:
  Result<std::unique_ptr<File>> wrap(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::unique_ptr<File>(std::make_unique<FillingFile>(*std::move(file), room_));
  }

  FakeDisk disk_;
  Room room_;
};

std::unique_ptr<PartitionLog> open(Disk& disk) {
  PartitionLogOptions options;
  options.segment_bytes = 8192;
  return PartitionLog::open(disk, "p", {.options = options, .synced_end = Offset{0}, .now = kNow})
      .value();
}

Status append(PartitionLog& log, const std::vector<std::string>& batches) {
  std::vector<CheckedBatch> checked;
  for (const std::string& batch : batches) checked.push_back(check_batch(batch, {}, kNow).value());
  const auto outcomes = log.append(checked, LeaderEpoch{0}, kNow);
  if (!outcomes) return outcomes.error();
  return {};
}

// Three equal batches, of which one and a half fit; then one of the same size. If the half were not
// cut off durably, a crash could leave the second of the three behind the batch that replaced the
// first.
TEST(PartitionFullDisk, NothingOfARefusedAppendEverAppears) {
  const std::string refused = plain_batch(1, 500, batch_samples::kTime.value - 1);
  const std::string accepted = plain_batch(1, 500, batch_samples::kTime.value);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const std::uint64_t halves : {1, 3, 5}) {
      FillingDisk disk(seed);
      {
        const auto log = open(disk);
        disk.room().bytes = refused.size() * halves / 2;
        const Status full = append(*log, {refused, refused, refused});
        ASSERT_FALSE(full.has_value());
        ASSERT_EQ(full.error().code, Errc::disk_full);
        ASSERT_EQ(log->next(), Offset{0});
        disk.room() = {};
        ASSERT_TRUE(append(*log, {accepted}).has_value());
      }
      disk.fake().crash();
      const auto log = open(disk);
      ASSERT_LE(log->next(), Offset{1});
      PartitionReader reader = log->reader();
      if (log->next() == Offset{1}) {
        const ReadBatches read = reader.read(Offset{0}, 1).value();
        ASSERT_EQ(BatchView::parse(read.bytes)->header().max_timestamp, batch_samples::kTime);
      }
    }
  }
}

TEST(PartitionFullDisk, ARollThatRunsOutOfRoomIsTriedAgain) {
  const std::string batch = plain_batch(1, 2000);
  FillingDisk disk(1);
  const auto log = open(disk);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(append(*log, {batch}).has_value());
  for (std::uint64_t room = 0; room < 60; ++room) {
    disk.room().bytes = room;
    const Status full = append(*log, {batch});
    ASSERT_FALSE(full.has_value());
    ASSERT_EQ(full.error().code, Errc::disk_full);
    ASSERT_EQ(log->next(), Offset{3});
  }
  disk.room() = {};
  ASSERT_TRUE(append(*log, {batch}).has_value());
  log->publish(log->sync().value());
  EXPECT_EQ(log->describe().segments, 2U);
  disk.fake().crash();
  EXPECT_EQ(open(disk)->next(), Offset{4});
}

// Connections can take all descriptors of the process. At whichever step of the roll that happens,
// the append is refused, and a crash in between leaves a log that can be read and written.
TEST(PartitionOpenFiles, ARollWithoutDescriptorsIsTriedAgain) {
  const std::string batch = plain_batch(1, 2000);
  const std::string small = plain_batch(1, 10);
  for (std::uint64_t opens = 0; opens < 12; ++opens) {
    FakeDisk disk(opens);
    std::int64_t end = 3;
    {
      const auto log = open(disk);
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(append(*log, {batch}).has_value());
      disk.set_opens_left(opens);
      const Status refused = append(*log, {batch});
      if (!refused.has_value()) {
        EXPECT_EQ(refused.error().code, Errc::resource_exhausted);
        EXPECT_NE(refused.error().text.find("Too many open files"), std::string::npos);
        EXPECT_EQ(log->next(), Offset{3});
        // A smaller batch must not go into the old segment either: it would pass the name of the
        // next one.
        EXPECT_FALSE(append(*log, {small}).has_value());
      } else {
        ++end;
      }
      disk.set_opens_left(std::nullopt);
      if (opens % 2 == 0) {
        ASSERT_TRUE(append(*log, {batch}).has_value());
        ++end;
      }
      log->publish(log->sync().value());
    }
    disk.crash();
    const auto log = open(disk);
    EXPECT_EQ(log->next(), Offset{end}) << opens;
    EXPECT_FALSE(log->describe().read_only.has_value()) << opens;
    EXPECT_TRUE(append(*log, {batch}).has_value());
  }
}

}  // namespace
}  // namespace baton
