#include "sim/fake_disk.h"

#include <set>

#include <gtest/gtest.h>

namespace baton {
namespace {

constexpr std::uint64_t kSeeds = 200;
constexpr std::uint64_t kSectorBytes = 512;

std::string read_all(FakeDisk& disk, const std::string& path) {
  const auto file = disk.open(path);
  return file ? (*file)->read_at(0, ~std::uint64_t{0}).value() : "absent";
}

void make_durable_file(FakeDisk& disk, const std::string& path, std::string_view bytes) {
  const auto file = disk.create(path).value();
  ASSERT_TRUE(file->write_at(0, bytes).has_value());
  ASSERT_TRUE(file->sync().has_value());
  ASSERT_TRUE(disk.sync_folder(".").has_value());
}

TEST(FakeDisk, SyncedBytesUnderASyncedNameSurviveEveryCrash) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", "bytes");
    disk.crash();
    EXPECT_EQ(read_all(disk, "a"), "bytes");
  }
}

TEST(FakeDisk, UnsyncedBytesAreKeptLostOrTornBySector) {
  const std::string before(3 * kSectorBytes, 'o');
  const std::string after(3 * kSectorBytes, 'n');
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", before);
    ASSERT_TRUE(disk.open("a").value()->write_at(0, after).has_value());
    disk.crash();
    const std::string bytes = read_all(disk, "a");
    std::string sectors;
    for (std::size_t i = 0; i < bytes.size(); i += kSectorBytes) {
      EXPECT_EQ(bytes.substr(i, kSectorBytes), std::string(kSectorBytes, bytes[i]));
      sectors.push_back(bytes[i]);
    }
    seen.insert(sectors);
  }
  EXPECT_EQ(seen.size(), 8U);
}

// Two writes without a sync between them: the later one may be there without the earlier.
TEST(FakeDisk, UnsyncedWritesMayBeKeptOutOfOrder) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", "--");
    const auto file = disk.open("a").value();
    ASSERT_TRUE(file->write_at(0, "1").has_value());
    ASSERT_TRUE(file->write_at(1, "2").has_value());
    disk.crash();
    seen.insert(read_all(disk, "a"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"--", "1-", "-2", "12"}));
}

TEST(FakeDisk, UnsyncedNamesAreKeptOrLost) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", "a");
    make_durable_file(disk, "b", "b");
    ASSERT_TRUE(disk.rename("a", "c").has_value());
    ASSERT_TRUE(disk.remove("b").has_value());
    disk.crash();
    std::string names;
    const auto files = disk.list(".").value();
    for (const std::string& name : files) names += name;
    seen.insert(names);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"ab", "a", "bc", "c"}));
}

// No disk loses a renamed file: it has the old name or the new one.
TEST(FakeDisk, RenamesOfOneFileAreKeptInOrder) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", "bytes");
    ASSERT_TRUE(disk.rename("a", "b").has_value());
    ASSERT_TRUE(disk.rename("b", "c").has_value());
    disk.crash();
    const auto names = disk.list(".").value();
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(read_all(disk, names.front()), "bytes");
  }
}

TEST(FakeDisk, FilesOpenedBeforeACrashAreDead) {
  FakeDisk disk(1);
  make_durable_file(disk, "a", "bytes");
  const auto file = disk.open("a").value();
  disk.crash();

  EXPECT_EQ(file->write_at(0, "x").error().code, Errc::io_error);
  EXPECT_EQ(file->read_at(0, 1).error().code, Errc::io_error);
  EXPECT_EQ(file->sync().error().code, Errc::io_error);
  EXPECT_EQ(read_all(disk, "a"), "bytes");
}

TEST(FakeDisk, AKillLosesNothingButTheOpenFiles) {
  FakeDisk disk(1);
  const auto file = disk.create("a").value();
  ASSERT_TRUE(file->write_at(0, "bytes").has_value());
  disk.kill();

  EXPECT_FALSE(file->sync().has_value());
  EXPECT_EQ(read_all(disk, "a"), "bytes");
}

TEST(FakeDisk, FullDiskRefusesToGrowButNotToOverwrite) {
  FakeDisk disk(1);
  disk.set_capacity(10);
  const auto file = disk.create("a").value();
  ASSERT_TRUE(file->allocate(10).has_value());

  EXPECT_EQ(file->allocate(11).error().code, Errc::disk_full);
  EXPECT_EQ(file->write_at(5, "123456").error().code, Errc::disk_full);
  EXPECT_TRUE(file->write_at(5, "12345").has_value());
  ASSERT_TRUE(disk.remove("a").has_value());
  EXPECT_TRUE(disk.create("b").value()->allocate(10).has_value());
}

TEST(FakeDisk, PlantedFailuresComeOnceAndOnTime) {
  FakeDisk disk(1);
  const auto file = disk.create("a").value();
  disk.fail_write_after(1);
  disk.fail_sync_after(1);

  EXPECT_TRUE(file->write_at(0, "x").has_value());
  EXPECT_EQ(file->write_at(0, "x").error().code, Errc::io_error);
  EXPECT_TRUE(file->write_at(0, "x").has_value());
  EXPECT_TRUE(file->sync().has_value());
  EXPECT_EQ(disk.sync_folder(".").error().code, Errc::io_error);
  EXPECT_TRUE(file->sync().has_value());
}

// The bytes left by a failed write are what everybody reads, and what a later sync makes durable.
TEST(FakeDisk, FailedWriteLeavesTheSameBytesInMemoryAndOnTheDisk) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeDisk disk(seed);
    make_durable_file(disk, "a", std::string(4 * kSectorBytes, 'o'));
    const auto file = disk.open("a").value();
    disk.fail_write_after(0);
    EXPECT_FALSE(file->write_at(0, std::string(4 * kSectorBytes, 'n')).has_value());
    const std::string before = read_all(disk, "a");
    ASSERT_TRUE(file->sync().has_value());
    disk.crash();
    EXPECT_EQ(read_all(disk, "a"), before);
  }
}

TEST(FakeDisk, FlippedBitIsDurable) {
  FakeDisk disk(1);
  make_durable_file(disk, "a", "a");
  disk.flip_bit("a", 1);
  disk.crash();

  EXPECT_EQ(read_all(disk, "a"), "c");
}

TEST(FakeDisk, NumbersAreNotRepeatedAfterACrash) {
  FakeDisk disk(1);
  const std::uint64_t before = disk.random_number().value();
  disk.crash();

  EXPECT_NE(disk.random_number().value(), before);
  EXPECT_EQ(FakeDisk(1).random_number().value(), before);
}

}  // namespace
}  // namespace baton
