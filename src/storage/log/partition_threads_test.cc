// On the real disk: the fake disk's own lock would hide one that is missing in ours.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "core/stream/batch_samples.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

using batch_samples::kNow;
using batch_samples::kTime;

class PartitionThreadsTest : public testing::Test {
 protected:
  PartitionThreadsTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "baton-partition-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    PartitionLogOptions options;
    options.segment_bytes = 32768;
    log_ = PartitionLog::open(*disk_, folder_ + "/p",
                              {.options = options, .synced_end = Offset{0}, .now = kNow})
               .value();
  }
  ~PartitionThreadsTest() override {
    log_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Values that tell which offset they belong to.
  static std::string batch_at(std::int64_t offset, int records) {
    BatchBuilder builder;
    for (int i = 0; i < records; ++i) {
      const std::string value = std::to_string(offset + i) + std::string(100, '.');
      EXPECT_TRUE(builder
                      .add({.key = {},
                            .value = value,
                            .headers = {},
                            .timestamp = TimestampMs{kTime.value - 1'000'000 + offset + i}})
                      .has_value());
    }
    return builder.finish().value();
  }
  /// Every record says its own offset, and the checksums fit.
  static void expect_sound(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto batch = BatchView::parse(bytes);
      ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
      ASSERT_TRUE(batch->check_crc().has_value());
      auto reader = RecordReader::open(*batch).value();
      RecordView record;
      while (reader.next(record).value()) {
        ASSERT_TRUE(record.value->starts_with(std::to_string(record.offset.value) + "."));
      }
      bytes.remove_prefix(batch->bytes().size());
    }
  }

  void write(std::int64_t end, bool retain) {
    Random random(5);
    while (log_->next().value < end) {
      const std::string bytes =
          batch_at(log_->next().value, static_cast<int>(1 + random.below(20)));
      const auto checked = check_batch(bytes, {}, kNow).value();
      ASSERT_TRUE(log_->append(std::span(&checked, 1), LeaderEpoch{0}, kNow).has_value());
      if (retain && random.chance(1, 50)) {
        ASSERT_TRUE(log_->drop_old_segments(kNow).has_value());
      }
    }
    written_ = log_->next().value;
    done_ = true;
  }
  void sync_until_done() {
    while (true) {
      const bool last = done_;
      const auto end = log_->sync();
      ASSERT_TRUE(end.has_value());
      log_->publish(*end);
      if (last) return;
    }
  }

  std::unique_ptr<Disk> disk_ = make_real_disk();
  std::string folder_;
  std::unique_ptr<PartitionLog> log_;
  std::atomic<bool> done_ = false;
  std::atomic<std::int64_t> written_ = -1;
};

TEST_F(PartitionThreadsTest, ReadersFollowTheWriterAndSeeEverythingOnce) {
  std::vector<std::thread> threads;
  threads.emplace_back([&] { write(20'000, false); });
  threads.emplace_back([&] { sync_until_done(); });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      PartitionReader reader = log_->reader();
      Offset at{0};
      while (at.value != written_) {
        const auto read = reader.read(at, 10'000);
        ASSERT_TRUE(read.has_value()) << to_string(read.error());
        ASSERT_EQ(read->first, at);
        expect_sound(read->bytes);
        at = read->next;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(log_->describe().segments, 20U);
}

TEST_F(PartitionThreadsTest, SeekingReadersAndRetentionLeaveEachOtherAlone) {
  log_->set_retention({.age = {}, .bytes = 100'000});
  std::vector<std::thread> threads;
  threads.emplace_back([&] { write(20'000, true); });
  threads.emplace_back([&] { sync_until_done(); });
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] {
      Random random(seed);
      PartitionReader reader = log_->reader();
      while (!done_) {
        const std::int64_t first = reader.first().value;
        const Offset from{
            first + std::int64_t(random.below(std::uint64_t(reader.next().value - first + 1)))};
        const auto read = reader.read(from, 3000);
        if (!read) {
          ASSERT_EQ(read.error().code, Errc::offset_out_of_range) << to_string(read.error());
          continue;
        }
        expect_sound(read->bytes);
        const auto time = reader.offset_for_time(TimestampMs{kTime.value - 1'000'000 + from.value});
        ASSERT_TRUE(time.has_value()) << to_string(time.error());
        ASSERT_GE(*time, from);
        if (random.chance(1, 4)) reader.release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(log_->reader().first(), Offset{0});
}

}  // namespace
}  // namespace baton
