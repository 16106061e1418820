#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/random.h"
#include "sim/fake_disk.h"
#include "storage/journal/journal.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/segment_scan.h"

namespace baton {
namespace {

constexpr std::uint64_t kSegmentBytes = 16384;
constexpr std::uint64_t kSeeds = 600;
const std::string kFolder = "journal";

/// A journal's life of appends, syncs, trims and crashes, all drawn from one seed, and the simplest
/// model of what it promises: a list of rounds.
class JournalLife {
 public:
  explicit JournalLife(std::uint64_t seed)
      : disk_(seed),
        random_(Random(seed).fork("journal life")),
        equal_sizes_(random_.chance(1, 2)),
        trace_(seed) {}

  /// Ends early at the first broken promise, with a test failure.
  void run(int steps) {
    reopen();
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) act();
  }
  /// Leaves a closed journal whose rounds are all durable, and all but the last known to be.
  void finish() {
    if (failed_) restart();
    make_room();
    append_round("last but one");
    sync();
    append_round("last");
    sync();
    journal_.reset();
  }

  /// The same for two equal lives.
  [[nodiscard]] std::uint64_t trace() const { return trace_ ^ disk_.digest(); }
  FakeDisk& disk() { return disk_; }
  Random& random() { return random_; }

  Result<std::unique_ptr<Journal>> open() {
    return open_file_journal(disk_, kFolder, {.segment_bytes = kSegmentBytes, .spares_max = 2});
  }

 private:
  void act() {
    const std::uint64_t what = random_.below(100);
    note(what);
    // A journal that failed can only be opened again.
    if (failed_ || what < 4) return restart();
    if (what < 64) return append_random();
    if (what < 80) return sync();
    if (what < 90) return prepare();
    if (what < 96) return trim();
    if (what < 98) return plant_failure();
    disk_.set_capacity(random_.chance(1, 2) ? disk_.bytes_used() : ~std::uint64_t{0});
  }

  void note(std::uint64_t number) { trace_ = trace_ * 0x100000001b3ULL + number; }
  [[nodiscard]] Position next() const { return Position{rounds_.size() + 1}; }

  void append_random() {
    const std::uint64_t size_max = random_.chance(1, 20) ? journal_->round_bytes_max() : 1500;
    const std::uint64_t size = equal_sizes_ ? 900 : random_.below(size_max + 1);
    // Facts unlike those of any other history, so that a round of another history is noticed.
    std::string facts = fmt::format("{:016x}", random_.next());
    facts.resize(size, static_cast<char>(random_.next()));
    append_round(facts);
  }

  void append_round(const std::string& facts) {
    const auto room = journal_->room();
    const Status status =
        journal_->append(next(), Instant{static_cast<std::int64_t>(trace_)}, facts);
    note(status.has_value());
    if (!status && status.error().code == Errc::journal_full) {
      EXPECT_TRUE(room.everything == 0 || facts.size() > room.everything);
      return;
    }
    in_flight_ = facts;
    if (!status) return fail(status.error());
    in_flight_.reset();
    rounds_.push_back(facts);
  }

  void sync() {
    const auto durable = journal_->sync();
    note(durable.has_value());
    if (!durable) return fail(durable.error());
    EXPECT_EQ(*durable, next());
    durable_ = rounds_.size();
  }

  void prepare() {
    const Status status = journal_->prepare();
    note(status.has_value());
    if (!status && status.error().code != Errc::disk_full) fail(status.error());
  }

  void trim() {
    const std::uint64_t before = trimmed_ + random_.below(durable_ + 2 - trimmed_);
    trimmed_ = std::max(trimmed_, before);
    const Status status = journal_->trim(Position{before});
    note(status.has_value());
    if (!status) fail(status.error());
  }

  void plant_failure() {
    if (random_.chance(1, 2)) {
      disk_.fail_sync_after(random_.below(4));
    } else {
      disk_.fail_write_after(random_.below(4));
    }
  }

  void fail(const Error& error) {
    EXPECT_EQ(error.code, Errc::io_error) << to_string(error);
    failed_ = true;
  }

  void restart() {
    // A kill loses nothing; a power loss may follow before the journal was opened again.
    const bool crash = random_.chance(3, 4);
    if (crash) {
      disk_.crash();
    } else {
      disk_.kill();
    }
    // Opening the journal may be cut off as well, at any point.
    for (int i = 0; random_.chance(1, 3) && i < 5; ++i) {
      plant_failure();
      journal_ = nullptr;
      if (const auto opened = open(); !opened) {
        EXPECT_EQ(opened.error().code, Errc::io_error) << to_string(opened.error());
      }
      disk_.crash();
    }
    reopen();
  }

  void reopen() {
    disk_.fail_sync_after(~std::uint64_t{0});
    disk_.fail_write_after(~std::uint64_t{0});
    journal_ = nullptr;
    auto opened = open();
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    journal_ = *std::move(opened);
    failed_ = false;
    compare();
  }

  /// What is there now must be a prefix of what was appended, including all that was durable.
  void compare() {
    const std::uint64_t end = journal_->next().value - 1;
    note(end);
    if (in_flight_) rounds_.push_back(*in_flight_);
    in_flight_.reset();
    ASSERT_GE(end, durable_);
    ASSERT_LE(end, rounds_.size());
    std::uint64_t expected = std::max<std::uint64_t>(trimmed_, 1);
    const Status status = journal_->read(Position{expected}, [&](const Round& round) -> Status {
      EXPECT_EQ(round.position.value, expected);
      EXPECT_TRUE(round.facts == rounds_[expected - 1]) << "other facts in round " << expected;
      note(static_cast<std::uint64_t>(round.now.ns));
      ++expected;
      return {};
    });
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
    EXPECT_EQ(expected, std::max(end + 1, trimmed_));
    rounds_.resize(end);
    durable_ = end;
  }

  void make_room() {
    disk_.fail_sync_after(~std::uint64_t{0});
    disk_.fail_write_after(~std::uint64_t{0});
    disk_.set_capacity(~std::uint64_t{0});
    ASSERT_TRUE(journal_->prepare().has_value());
  }

  FakeDisk disk_;
  Random random_;
  // Rounds of equal size begin at the same places in every history, so their content must differ.
  bool equal_sizes_;
  std::uint64_t trace_;
  std::unique_ptr<Journal> journal_;
  bool failed_ = false;
  std::vector<std::string> rounds_;  // The one at position p is at p - 1; trimmed ones too.
  // A round whose write failed: it may be there, or not.
  std::optional<std::string> in_flight_;
  std::uint64_t durable_ = 0;  // How many rounds were reported durable.
  std::uint64_t trimmed_ = 0;  // Rounds before this position may be gone.
};

/// Where the rounds of a closed journal are.
struct Place {
  std::string path;
  std::uint64_t offset;
  std::uint64_t bytes;
};

std::vector<Place> places_of_rounds(FakeDisk& disk) {
  std::vector<Place> places;
  const auto names = disk.list(kFolder).value();
  for (const std::string& name : names) {
    if (!parse_segment_name(name)) continue;
    const std::string path = kFolder + "/" + name;
    const std::string bytes = disk.open(path).value()->read_at(0, kSegmentBytes).value();
    SegmentReader reader(bytes, decode_segment_header(bytes).value());
    while (const auto found = reader.next()) {
      places.push_back({path, found->offset, kRoundHeaderBytes + found->round.facts.size()});
    }
  }
  return places;
}

TEST(JournalCrash, NothingDurableIsLostAndNothingOfAnotherHistoryAppears) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    JournalLife(seed).run(300);
    if (HasFailure()) return;
  }
}

TEST(JournalCrash, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    JournalLife once(seed);
    JournalLife again(seed);
    once.run(200);
    again.run(200);
    EXPECT_EQ(once.trace(), again.trace()) << seed;
  }
}

// The last round that a later round calls durable is the last but one.
TEST(JournalCrash, DamageBeforeTheDurableEndIsAlwaysRefused) {
  for (std::uint64_t seed = 0; seed < kSeeds / 2; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    JournalLife life(seed);
    life.run(120);
    life.finish();
    const std::vector<Place> places = places_of_rounds(life.disk());
    ASSERT_GE(places.size(), 2U);
    const Place& hit = places[life.random().below(places.size() - 1)];
    life.disk().flip_bit(hit.path, 8 * hit.offset + life.random().below(8 * hit.bytes));

    const auto opened = life.open();

    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::journal_corrupt) << to_string(opened.error());
    EXPECT_NE(opened.error().text.find(hit.path), std::string::npos) << to_string(opened.error());
    EXPECT_NE(opened.error().text.find(fmt::format("offset {}:", hit.offset)), std::string::npos);
  }
}

}  // namespace
}  // namespace baton
