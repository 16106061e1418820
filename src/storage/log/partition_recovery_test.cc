#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "storage/log/partition_fixture.h"

namespace baton {
namespace {

using batch_samples::kTime;
using batch_samples::plain_batch;

const std::string kFirst = "00000000000000000000.log";
const std::string kSecond = "00000000000000000036.log";
const std::string kLast = "00000000000000000072.log";

/// Thirty batches of three records: 36 records in each of the first two segments, 18 in the last.
class PartitionRecoveryTest : public PartitionTest {
 protected:
  void make_partition() {
    const Log log = open();
    fill(*log, 30);
    batch_bytes_ = content(kFirst).size() / 12;
    disk_.kill();
  }
  [[nodiscard]] static std::string path(const std::string& name) { return kFolder + "/" + name; }
  void flip(const std::string& name, std::uint64_t byte) { disk_.flip_bit(path(name), 8 * byte); }
  void cut(const std::string& name, std::uint64_t size) {
    const auto file = disk_.open(path(name)).value();
    ASSERT_TRUE(file->truncate(size).has_value());
    ASSERT_TRUE(file->sync().has_value());
  }
  void remove(const std::string& name) {
    ASSERT_TRUE(disk_.remove(path(name)).has_value());
    ASSERT_TRUE(disk_.sync_folder(kFolder).has_value());
  }
  /// Read-only, for a reason that names the file and the position.
  void expect_damaged(const PartitionLog& log, const std::string& name, std::uint64_t position) {
    const auto reason = log.describe().read_only;
    ASSERT_TRUE(reason.has_value());
    EXPECT_NE(reason->find(fmt::format("{} at position {}:", path(name), position)),
              std::string::npos)
        << *reason;
  }

  std::uint64_t batch_bytes_ = 0;
};

TEST_F(PartitionRecoveryTest, EverythingIsThereAgain) {
  make_partition();
  const Log log = open(90);
  const PartitionDescription description = log->describe();
  EXPECT_EQ(description.first, Offset{0});
  EXPECT_EQ(description.next, Offset{90});
  EXPECT_EQ(description.visible, Offset{90});
  EXPECT_EQ(description.segments, 3U);
  EXPECT_FALSE(description.read_only.has_value());
  EXPECT_EQ(count_readable(*log), 90);
  fill(*log, 10);
  EXPECT_EQ(count_readable(*log), 120);
}

// Wherever the last write was cut off, whole batches stay and the rest is removed.
TEST_F(PartitionRecoveryTest, ATornTailIsCut) {
  make_partition();
  const std::string whole = content(kLast);
  for (std::uint64_t size = 0; size < whole.size(); size += 41) {
    overwrite(kLast, whole.substr(0, size));
    const Log log = open(72);
    EXPECT_EQ(log->next().value, 72 + std::int64_t(size / batch_bytes_) * 3);
    EXPECT_EQ(content(kLast).size(), size / batch_bytes_ * batch_bytes_);
    EXPECT_EQ(count_readable(*log), log->next().value);
    EXPECT_EQ(append(*log, plain_batch(1, 10)).base_offset, log->next());
  }
}

TEST_F(PartitionRecoveryTest, DamageBehindTheSyncedEndIsATornTail) {
  make_partition();
  flip(kLast, 2 * batch_bytes_ + 100);
  const Log log = open(78);
  EXPECT_FALSE(log->describe().read_only.has_value());
  EXPECT_EQ(log->next(), Offset{78});
  EXPECT_EQ(content(kLast).size(), 2 * batch_bytes_);
}

TEST_F(PartitionRecoveryTest, DamageBeforeTheSyncedEndMakesThePartitionReadOnly) {
  make_partition();
  const std::string before = content(kLast);
  flip(kLast, 2 * batch_bytes_ + 100);
  const Log log = open(81);
  expect_damaged(*log, kLast, 2 * batch_bytes_);
  const auto refused = try_append(*log, plain_batch(1, 10));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::read_only);
  // Nothing was cut, and records before and behind the damage can be read; the damage itself is an
  // error, not the end of the log.
  EXPECT_EQ(content(kLast).size(), before.size());
  PartitionReader reader = log->reader();
  EXPECT_EQ(reader.next(), Offset{90});
  EXPECT_EQ(reader.read(Offset{75}, 1 << 20U)->next, Offset{78});
  EXPECT_EQ(reader.read(Offset{79}, 1000).error().code, Errc::malformed);
  EXPECT_EQ(reader.read(Offset{81}, 1 << 20U)->next, Offset{90});
}

// After a header that makes no sense, the rest of the segment cannot be read.
TEST_F(PartitionRecoveryTest, ADamagedHeaderEndsWhatCanBeRead) {
  make_partition();
  flip(kLast, 2 * batch_bytes_ + 8);
  const Log log = open(90);
  expect_damaged(*log, kLast, 2 * batch_bytes_);
  PartitionReader reader = log->reader();
  EXPECT_EQ(reader.next(), Offset{78});
  const auto read = reader.read(Offset{78}, 1000);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Errc::malformed);
  EXPECT_NE(read.error().text.find("were synced and are lost"), std::string::npos);
}

TEST_F(PartitionRecoveryTest, SyncedRecordsThatAreMissingAreReported) {
  make_partition();
  cut(kLast, 2 * batch_bytes_);
  const Log log = open(90);
  expect_damaged(*log, kLast, 2 * batch_bytes_);
  EXPECT_EQ(content(kLast).size(), 2 * batch_bytes_);
}

TEST_F(PartitionRecoveryTest, NoFilesAtAllThoughSomethingWasSyncedIsRefused) {
  const auto log = try_open(5);
  ASSERT_FALSE(log.has_value());
  EXPECT_NE(log.error().text.find("holds no segment"), std::string::npos);
}

TEST_F(PartitionRecoveryTest, AMissingSegmentIsReported) {
  make_partition();
  remove(kSecond);
  const Log log = open(90);
  expect_damaged(*log, kFirst, 12 * batch_bytes_);
  PartitionReader reader = log->reader();
  EXPECT_EQ(reader.read(Offset{30}, 1 << 20U)->next, Offset{36});
  EXPECT_EQ(reader.read(Offset{36}, 1000).error().code, Errc::malformed);
  EXPECT_EQ(reader.read(Offset{72}, 1 << 20U)->next, Offset{90});
}

TEST_F(PartitionRecoveryTest, AClosedSegmentThatIsCutOrDamagedIsReported) {
  make_partition();
  const std::string whole = content(kSecond);
  cut(kSecond, 11 * batch_bytes_ + 10);
  expect_damaged(*open(90), kSecond, 11 * batch_bytes_);
  EXPECT_EQ(content(kSecond).size(), 11 * batch_bytes_ + 10);
  // Even when the known synced end is lower: a closed segment was synced.
  expect_damaged(*open(0), kSecond, 11 * batch_bytes_);
  overwrite(kSecond, whole);
  EXPECT_FALSE(open(90)->describe().read_only.has_value());
  flip(kSecond, 3 * batch_bytes_ + 100);
  remove("00000000000000000036.index");
  const Log log = open(90);
  expect_damaged(*log, kSecond, 3 * batch_bytes_);
  EXPECT_EQ(log->reader().read(Offset{45}, 1000).error().code, Errc::malformed);
  EXPECT_EQ(log->reader().read(Offset{48}, 1)->next, Offset{51});
}

TEST_F(PartitionRecoveryTest, MissingShortAndForeignIndexesAreRebuiltTheSame) {
  make_partition();
  const std::string index = content("00000000000000000036.index");
  const std::string times = content("00000000000000000036.timeindex");
  const auto rebuilt = [&] {
    const Log log = open(90);
    EXPECT_FALSE(log->describe().read_only.has_value());
    EXPECT_EQ(content("00000000000000000036.index"), index);
    EXPECT_EQ(content("00000000000000000036.timeindex"), times);
    EXPECT_EQ(count_readable(*log), 90);
  };
  for (const std::string name : {"00000000000000000036.index", "00000000000000000036.timeindex"}) {
    const std::string whole = content(name);
    remove(name);
    rebuilt();
    for (std::size_t size = 0; size < whole.size(); ++size) {
      overwrite(name, whole.substr(0, size));
      rebuilt();
    }
    overwrite(name, std::string(whole.size(), '\xff'));
    rebuilt();
    overwrite(name, std::string(whole.size(), '\0'));
    rebuilt();
  }
}

class ProducerRecoveryTest : public PartitionRecoveryTest {
 protected:
  static std::string numbered(int number) {
    return plain_batch(
        10, 100, kTime.value,
        ProducerStamp{ProducerId{number % 3}, ProducerEpoch{0}, Sequence32{number / 3 * 10}});
  }
  void make_producers() {
    const Log log = open();
    for (int i = 0; i < 60; ++i) EXPECT_TRUE(append(*log, numbered(i)).stored());
    ASSERT_GE(log->describe().segments, 3U);
    sync_and_publish(*log);
    disk_.kill();
  }
  void expect_known(PartitionLog& log) {
    for (int i = 45; i < 60; ++i) {
      const AppendOutcome outcome = append(log, numbered(i));
      EXPECT_EQ(outcome.verdict, ProducerVerdict::duplicate) << i;
      EXPECT_EQ(outcome.base_offset, Offset{10 * i});
    }
    EXPECT_EQ(append(log, numbered(0)).verdict, ProducerVerdict::old_duplicate);
    EXPECT_EQ(append(log, numbered(63)).verdict, ProducerVerdict::gap);
  }
};

TEST_F(ProducerRecoveryTest, ProducersAreKnownAgain) {
  make_producers();
  expect_known(*open(600));
}

TEST_F(ProducerRecoveryTest, ProducersAreKnownWithoutOrWithDamagedSnapshots) {
  make_producers();
  for (const std::string& name : names()) {
    if (!name.ends_with(".snapshot")) continue;
    flip(name, 30);
    expect_known(*open(600));
  }
  for (const std::string& name : names()) {
    if (name.ends_with(".snapshot")) remove(name);
  }
  expect_known(*open(600));
}

TEST_F(ProducerRecoveryTest, ASnapshotOfANewerVersionIsRefused) {
  make_producers();
  std::string newest;
  for (const std::string& name : names()) {
    if (name.ends_with(".snapshot")) newest = name;
  }
  std::string bytes = content(newest);
  bytes[8] = 2;
  overwrite(newest, bytes);
  EXPECT_TRUE(try_open(600).has_value());  // A flipped bit: the index is rebuilt from the batches.
  bytes.resize(bytes.size() - sizeof(std::uint32_t));
  Encoder(bytes).fixed(crc32c(bytes));
  overwrite(newest, bytes);
  EXPECT_EQ(try_open(600).error().code, Errc::store_too_new);
}

TEST_F(PartitionRecoveryTest, StrayFilesGoAndOddNamesAreRefused) {
  make_partition();
  overwrite("00000000000000000099.index", "left over");
  overwrite("00000000000000000099.snapshot", "left over");
  overwrite("notes.txt", "kept");
  EXPECT_FALSE(open(90)->describe().read_only.has_value());
  EXPECT_EQ(content("00000000000000000099.index"), "absent");
  EXPECT_EQ(content("00000000000000000099.snapshot"), "absent");
  EXPECT_EQ(content("notes.txt"), "kept");
  overwrite("12.log", "?");
  const auto refused = try_open(90);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text.find("12.log"), std::string::npos);
}

// A crash of the process leaves unsynced records in the memory of the system: they can be read now,
// so a later power failure must not lose them.
TEST_F(PartitionRecoveryTest, WhatIsVisibleAfterOpeningIsDurable) {
  {
    const Log log = open();
    append(*log, plain_batch(5, 10));
    disk_.kill();
  }
  EXPECT_EQ(open()->reader().next(), Offset{5});
  disk_.crash();
  EXPECT_EQ(open(5)->reader().next(), Offset{5});
}

}  // namespace
}  // namespace baton
