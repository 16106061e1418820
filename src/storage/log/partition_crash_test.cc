#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/random.h"
#include "core/stream/batch_samples.h"
#include "sim/fake_disk.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

constexpr std::uint64_t kSeeds = 300;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
const std::string kFolder = "partition";
constexpr Instant kNow = batch_samples::kNow;

/// A partition's life of appends, syncs, retention and crashes, all drawn from one seed, and the
/// simplest model of what it promises: a list of batches.
class PartitionLife {
 public:
  explicit PartitionLife(std::uint64_t seed)
      : disk_(seed), random_(Random(seed).fork("partition life")), trace_(seed) {}

  /// Ends early at the first broken promise, with a test failure.
  void run(int steps) {
    reopen();
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) act();
    if (!testing::Test::HasFailure()) restart();
  }
  /// The same for two equal lives.
  [[nodiscard]] std::uint64_t trace() const { return trace_ ^ disk_.digest(); }

  /// Runs one life with a failure planted by `plant`, and then a crash: some segments, then
  /// retention. Returns whether the failure was reached.
  template <class Plant>
  bool run_to_failure(Plant plant) {
    reopen();
    plant(disk_);
    for (int i = 0; i < 24 && !failed_; ++i) {
      append_batches(1 + i % 3);
      if (!failed_ && i % 2 == 1) sync();
    }
    if (!failed_) drop_old();
    const bool failed = failed_;
    disk_.crash();
    reopen();
    return failed;
  }

 private:
  struct Stored {
    std::string bytes;
    std::int64_t records;
  };

  void act() {
    const std::uint64_t what = random_.below(100);
    note(what);
    // A log that failed can only be opened again.
    if (failed_ || what < 5) return restart();
    if (what < 65) return append_batches(1 + random_.below(3));
    if (what < 85) return sync();
    if (what < 90) return drop_old();
    if (what < 94) return plant_failure();
    disk_.set_capacity(random_.chance(1, 2) ? disk_.bytes_used() + random_.below(2000) : kNever);
  }

  void note(std::uint64_t number) { trace_ = trace_ * 0x100000001b3ULL + number; }

  std::string make_batch() {
    // Values unlike those of any other history, so that a batch of another history is noticed.
    std::string value = fmt::format("{:016x}", random_.next());
    value.resize(16 + random_.below(random_.chance(1, 10) ? 4000 : 600), 'x');
    std::vector<Record> records(
        1 + random_.below(4),
        Record{.key = {}, .value = value, .headers = {}, .timestamp = batch_samples::kTime});
    std::optional<ProducerStamp> producer;
    if (random_.chance(1, 2)) {
      producer = ProducerStamp{ProducerId{1}, ProducerEpoch{0}, Sequence32{staged_sequence_}};
      staged_sequence_ += static_cast<std::int32_t>(records.size());
    }
    return batch_samples::batch_of(records, Compression::none, producer);
  }

  void append_batches(std::uint64_t count) {
    staged_sequence_ = sequence_;
    std::vector<std::string> bytes;
    for (std::uint64_t i = 0; i < count; ++i) bytes.push_back(make_batch());
    std::vector<CheckedBatch> batches;
    for (const std::string& batch : bytes) {
      batches.push_back(check_batch(batch, {}, kNow).value());
    }
    const auto outcomes = log_->append(batches, LeaderEpoch{1}, kNow);
    note(outcomes.has_value());
    if (!outcomes && outcomes.error().code == Errc::disk_full) return;
    std::vector<Stored> stored;
    std::int64_t next = next_;
    for (const CheckedBatch& batch : batches) {
      std::string expected(batch.bytes());
      set_base_offset(std::span(expected), Offset{next}, LeaderEpoch{1});
      stored.push_back({std::move(expected), batch.header().count});
      next += batch.header().count;
    }
    if (!outcomes) {
      // The batch may be there, or not, or a part of it.
      in_flight_ = std::move(stored);
      return fail(outcomes.error());
    }
    for (const AppendOutcome& outcome : *outcomes) {
      EXPECT_EQ(outcome.verdict, ProducerVerdict::append) << outcome.text;
    }
    sequence_ = staged_sequence_;
    for (Stored& batch : stored) add(std::move(batch));
    EXPECT_EQ(log_->next(), Offset{next_});
  }

  void add(Stored batch) {
    const std::int64_t records = batch.records;
    batches_.emplace(next_, std::move(batch));
    next_ += records;
  }

  void sync() {
    const auto end = log_->sync();
    note(end.has_value());
    if (!end) return fail(end.error());
    EXPECT_EQ(*end, Offset{next_});
    synced_ = next_;
    log_->publish(*end);
    // The owner's journal knows a part of it.
    if (random_.chance(1, 2)) known_synced_ = synced_;
  }

  void drop_old() {
    log_->set_retention({.age = {}, .bytes = 8192});
    const auto dropped = log_->drop_old_segments(kNow);
    note(dropped.has_value());
    if (!dropped) {
      // Some records may be removed already.
      first_max_ = synced_;
      return fail(dropped.error());
    }
    if (!dropped->empty()) first_max_ = std::max(first_max_, dropped->back().next.value);
  }

  void plant_failure() {
    if (random_.chance(1, 2)) {
      disk_.fail_sync_after(random_.below(6));
    } else {
      disk_.fail_write_after(random_.below(6));
    }
  }

  void fail(const Error& error) {
    EXPECT_EQ(error.code, Errc::io_error) << to_string(error);
    failed_ = true;
  }

  Result<std::unique_ptr<PartitionLog>> open() {
    PartitionLogOptions options;
    options.segment_bytes = 8192;
    return PartitionLog::open(
        disk_, kFolder, {.options = options, .synced_end = Offset{known_synced_}, .now = kNow});
  }

  void restart() {
    if (random_.chance(3, 4)) {
      disk_.crash();
    } else {
      disk_.kill();
    }
    disk_.set_capacity(kNever);
    // Opening the log may be cut off as well, at any point.
    for (int i = 0; random_.chance(1, 3) && i < 5; ++i) {
      plant_failure();
      log_ = nullptr;
      if (const auto opened = open(); !opened) {
        EXPECT_EQ(opened.error().code, Errc::io_error) << to_string(opened.error());
      }
      disk_.crash();
    }
    reopen();
  }

  void reopen() {
    disk_.fail_sync_after(kNever);
    disk_.fail_write_after(kNever);
    log_ = nullptr;
    auto opened = open();
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    log_ = *std::move(opened);
    failed_ = false;
    compare();
  }

  /// What is there now must be a prefix of what was appended, including all that was synced.
  void compare() {
    const PartitionDescription found = log_->describe();
    ASSERT_FALSE(found.read_only.has_value()) << *found.read_only;
    for (Stored& batch : in_flight_) add(std::move(batch));
    in_flight_.clear();
    ASSERT_GE(found.next.value, synced_);
    ASSERT_LE(found.next.value, next_);
    ASSERT_EQ(found.visible, found.next);
    ASSERT_LE(found.first.value, first_max_);
    PartitionReader reader = log_->reader();
    std::int64_t at = found.first.value;
    while (at < found.next.value) {
      const auto read = reader.read(Offset{at}, 1);
      ASSERT_TRUE(read.has_value()) << to_string(read.error());
      const auto expected = batches_.find(at);
      ASSERT_TRUE(expected != batches_.end()) << "a batch begins at " << at;
      ASSERT_TRUE(read->bytes == expected->second.bytes) << "another batch at " << at;
      at = read->next.value;
    }
    note(static_cast<std::uint64_t>(at));
    batches_.erase(batches_.lower_bound(at), batches_.end());
    next_ = at;
    synced_ = at;
    find_sequence();
  }

  // The producer's next sequence number follows from what is stored.
  void find_sequence() {
    sequence_ = 0;
    for (const auto& [offset, batch] : batches_) {
      const BatchHeader header = decode_batch_header(batch.bytes).value();
      if (header.idempotent()) sequence_ = header.producer.sequence.value + header.count;
    }
  }

  FakeDisk disk_;
  Random random_;
  std::uint64_t trace_;
  std::unique_ptr<PartitionLog> log_;
  bool failed_ = false;
  std::map<std::int64_t, Stored> batches_;  // By base offset; dropped ones too.
  std::vector<Stored> in_flight_;
  std::int64_t next_ = 0;
  std::int64_t synced_ = 0;
  std::int64_t known_synced_ = 0;
  std::int64_t first_max_ = 0;  // Records before this one may be gone.
  std::int32_t sequence_ = 0;
  std::int32_t staged_sequence_ = 0;
};

TEST(PartitionCrash, NothingSyncedIsLostOrChangedAndNothingOfAnotherHistoryAppears) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    PartitionLife(seed).run(200);
    if (HasFailure()) return;
  }
}

TEST(PartitionCrash, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    PartitionLife once(seed);
    PartitionLife again(seed);
    once.run(150);
    again.run(150);
    EXPECT_EQ(once.trace(), again.trace()) << seed;
  }
}

// The power fails at each write and at each sync of one life, every time with other losses.
TEST(PartitionCrash, ACrashAtEachOperationIsSurvived) {
  std::uint64_t operation = 0;
  for (bool reached = true; reached; ++operation) {
    reached = false;
    for (std::uint64_t seed = 0; seed < 20 && !HasFailure(); ++seed) {
      SCOPED_TRACE(fmt::format("operation {}, seed {}", operation, seed));
      reached |= PartitionLife(seed).run_to_failure(
          [&](FakeDisk& disk) { disk.fail_write_after(operation); });
      reached |= PartitionLife(seed).run_to_failure(
          [&](FakeDisk& disk) { disk.fail_sync_after(operation); });
    }
  }
  EXPECT_GT(operation, 40U);
}

}  // namespace
}  // namespace baton
