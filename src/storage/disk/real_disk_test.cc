#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "storage/disk/disk.h"
#include "storage/journal/journal.h"

namespace baton {
namespace {

/// The machine's own disk, in a folder that is removed with the test.
class RealDiskTest : public testing::Test {
 protected:
  RealDiskTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "baton-disk-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RealDiskTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

TEST_F(RealDiskTest, BytesAreReadBack) {
  const auto file = disk_->create(path("a")).value();
  ASSERT_TRUE(file->write_at(3, "bytes").has_value());
  ASSERT_TRUE(file->sync().has_value());

  const auto again = disk_->open(path("a")).value();
  EXPECT_EQ(again->size().value(), 8U);
  EXPECT_EQ(again->read_at(3, 5).value(), "bytes");
  EXPECT_EQ(again->read_at(5, 100).value(), "tes");
  EXPECT_EQ(again->read_at(100, 1).value(), "");
  EXPECT_EQ(disk_->create(path("a")).value()->size().value(), 0U);
}

TEST_F(RealDiskTest, AllocatedBytesAreZeroAndCounted) {
  const auto file = disk_->create(path("a")).value();
  ASSERT_TRUE(file->allocate(8192).has_value());

  EXPECT_EQ(file->size().value(), 8192U);
  EXPECT_EQ(file->read_at(0, 8192).value(), std::string(8192, '\0'));
  struct stat status{};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 8192);
  ASSERT_TRUE(file->truncate(10).has_value());
  EXPECT_EQ(file->size().value(), 10U);
}

TEST_F(RealDiskTest, NamesAreListedSortedWithoutFolders) {
  ASSERT_TRUE(disk_->create(path("b")).has_value());
  ASSERT_TRUE(disk_->create(path("a")).has_value());
  ASSERT_TRUE(disk_->make_folder(path("c")).has_value());
  ASSERT_TRUE(disk_->make_folder(path("c")).has_value());
  ASSERT_TRUE(disk_->rename(path("b"), path("d")).has_value());
  ASSERT_TRUE(disk_->sync_folder(folder_).has_value());

  EXPECT_EQ(disk_->list(folder_).value(), (std::vector<std::string>{"a", "d"}));
  ASSERT_TRUE(disk_->remove(path("a")).has_value());
  EXPECT_EQ(disk_->list(folder_).value(), std::vector<std::string>{"d"});
  EXPECT_TRUE(disk_->list(path("absent")).value().empty());
}

TEST_F(RealDiskTest, EveryErrorNamesThePath) {
  const std::string absent = path("absent/file");
  const Error errors[] = {
      disk_->open(absent).error(),           disk_->create(absent).error(),
      disk_->rename(absent, absent).error(), disk_->remove(absent).error(),
      disk_->make_folder(absent).error(),    disk_->sync_folder(absent).error(),
  };
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Errc::not_found) << error.text;
    EXPECT_NE(error.text.find(absent), std::string::npos) << error.text;
  }
  ASSERT_TRUE(disk_->create(path("file")).has_value());
  EXPECT_EQ(disk_->make_folder(path("file")).error().code, Errc::already_exists);
  EXPECT_EQ(disk_->list(path("file")).error().code, Errc::io_error);
}

// /dev/full is always full.
TEST_F(RealDiskTest, FullDiskIsToldFromOtherErrors) {
  const auto file = disk_->open("/dev/full");
  if (!file) GTEST_SKIP() << "there is no /dev/full here";

  const Status status = (*file)->write_at(0, "x");

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::disk_full);
  EXPECT_NE(status.error().text.find("/dev/full"), std::string::npos);
}

TEST_F(RealDiskTest, JournalThatCannotBeOpenedSaysWhy) {
  ASSERT_TRUE(disk_->create(path("file")).has_value());
  const auto not_a_folder = open_file_journal(*disk_, path("file"));
  const auto no_parent = open_file_journal(*disk_, path("absent/journal"));

  ASSERT_FALSE(not_a_folder.has_value());
  EXPECT_NE(not_a_folder.error().text.find(path("file")), std::string::npos);
  ASSERT_FALSE(no_parent.has_value());
  EXPECT_NE(no_parent.error().text.find(path("absent/journal")), std::string::npos);
}

// Append, sync, prepare and trim run on a thread each, as in the broker.
TEST_F(RealDiskTest, JournalKeepsEveryRoundWhileFourThreadsWorkOnIt) {
  constexpr std::uint64_t kRounds = 3000;
  constexpr JournalOptions kOptions{.segment_bytes = 65536, .spares_max = 2};
  auto journal = open_file_journal(*disk_, path("journal"), kOptions).value();
  ASSERT_TRUE(journal->prepare().has_value());
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> durable = 1;
  std::thread syncing([&] {
    while (!done) durable = journal->sync().value().value;
  });
  std::thread preparing([&] {
    while (!done) EXPECT_TRUE(journal->prepare().has_value());
  });
  std::thread trimming([&] {
    while (!done) {
      const std::uint64_t end = durable;
      EXPECT_TRUE(journal->trim(Position{end > 500 ? end - 500 : 1}).has_value());
      const Journal::Room room = journal->room();
      EXPECT_GE(room.everything, room.additions);
      EXPECT_LE(journal->bytes_since(Position{end}), kRounds * 2000);
    }
  });
  for (std::uint64_t position = 1; position <= kRounds;) {
    const std::string facts(position % 1777, static_cast<char>(position));
    const Status status = journal->append(Position{position}, Instant{1}, facts);
    if (status) {
      ++position;
    } else {
      ASSERT_EQ(status.error().code, Errc::journal_full) << to_string(status.error());
      std::this_thread::yield();
    }
  }
  done = true;
  syncing.join();
  preparing.join();
  trimming.join();
  const std::uint64_t kept_from = durable > 500 ? durable - 500 : 1;
  ASSERT_EQ(journal->sync().value(), Position{kRounds + 1});

  journal = open_file_journal(*disk_, path("journal"), kOptions).value();

  std::uint64_t position = kept_from;
  const Status status = journal->read(Position{kept_from}, [&](const Round& round) -> Status {
    EXPECT_EQ(round.position, Position{position});
    EXPECT_EQ(round.facts, std::string(position % 1777, static_cast<char>(position)));
    ++position;
    return {};
  });
  EXPECT_TRUE(status.has_value()) << to_string(status.error());
  EXPECT_EQ(position, kRounds + 1);
}

}  // namespace
}  // namespace baton
