#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/stream/batch_samples.h"
#include "sim/fake_disk.h"
#include "storage/log/partition_log.h"

namespace baton {

/// A partition on a fake disk, with small segments.
class PartitionTest : public testing::Test {
 protected:
  using Log = std::unique_ptr<PartitionLog>;
  static constexpr Instant kNow = batch_samples::kNow;
  static constexpr std::uint64_t kSegmentBytes = 16384;
  static inline const std::string kFolder = "partition";

  Result<Log> try_open(std::int64_t synced_end = 0) {
    return PartitionLog::open(disk_, kFolder,
                              {.options = options_, .synced_end = Offset{synced_end}, .now = kNow});
  }
  Log open(std::int64_t synced_end = 0) {
    auto log = try_open(synced_end);
    EXPECT_TRUE(log.has_value()) << to_string(log.error());
    return *std::move(log);
  }

  static Result<AppendOutcome> try_append(PartitionLog& log, const std::string& batch) {
    const auto checked = check_batch(batch, {}, kNow);
    EXPECT_TRUE(checked.has_value()) << to_string(checked.error());
    auto outcomes = log.append(std::span(&*checked, 1), LeaderEpoch{3}, kNow);
    if (!outcomes) return outcomes.error();
    return outcomes->front();
  }
  static AppendOutcome append(PartitionLog& log, const std::string& batch) {
    const auto outcome = try_append(log, batch);
    EXPECT_TRUE(outcome.has_value()) << to_string(outcome.error());
    return *outcome;
  }
  static void sync_and_publish(PartitionLog& log) {
    const auto end = log.sync();
    ASSERT_TRUE(end.has_value()) << to_string(end.error());
    log.publish(*end);
  }
  /// `count` batches of `records` records, published.
  static void fill(PartitionLog& log, int count, int records = 3, std::size_t bytes = 400,
                   std::int64_t time_step = 1000) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t time =
          batch_samples::kTime.value - 10'000'000 + log.next().value * time_step;
      EXPECT_TRUE(append(log, batch_samples::plain_batch(records, bytes, time)).stored());
    }
    sync_and_publish(log);
  }
  /// The number of records, whose offsets must be dense; fails the test otherwise.
  static std::int64_t count_readable(const PartitionLog& log, std::size_t bytes_max = 5000) {
    PartitionReader reader = log.reader();
    Offset at = reader.first();
    std::int64_t records = 0;
    while (at < reader.next()) {
      const auto batches = reader.read(at, bytes_max);
      EXPECT_TRUE(batches.has_value()) << to_string(batches.error());
      if (!batches) return -1;
      EXPECT_EQ(batches->first, at);
      EXPECT_GT(batches->next, at);
      records += batches->next.value - at.value;
      at = batches->next;
    }
    return records;
  }
  std::string content(const std::string& name) {
    const auto file = disk_.open(kFolder + "/" + name);
    return file ? (*file)->read_at(0, ~std::uint64_t{0}).value() : "absent";
  }
  void overwrite(const std::string& name, std::string_view bytes) {
    const auto file = disk_.create(kFolder + "/" + name).value();
    ASSERT_TRUE(file->write_at(0, bytes).has_value());
    ASSERT_TRUE(file->sync().has_value());
    ASSERT_TRUE(disk_.sync_folder(kFolder).has_value());
  }
  std::vector<std::string> names() { return disk_.list(kFolder).value(); }

  FakeDisk disk_{1};
  PartitionLogOptions options_{.segment_bytes = kSegmentBytes};
};

}  // namespace baton
