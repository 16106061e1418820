// More than 500 lines: all claims about one class.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/fake_disk.h"
#include "storage/journal/journal.h"
#include "storage/journal/journal_format.h"

namespace baton {
namespace {

constexpr std::uint64_t kSegmentBytes = 16384;
constexpr JournalOptions kOptions{.segment_bytes = kSegmentBytes, .spares_max = 2};
const std::string kFolder = "journal";

struct Seen {
  std::uint64_t position;
  std::int64_t now;
  std::string facts;
  bool operator==(const Seen&) const = default;
};

/// A journal on a fake disk, and the few steps that every test takes with it.
class FileJournalTest : public testing::Test {
 protected:
  void open() {
    auto opened = open_file_journal(disk_, kFolder, kOptions);
    ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
    journal_ = *std::move(opened);
  }
  void open_prepared() {
    open();
    ASSERT_TRUE(journal_->prepare().has_value());
  }
  Error open_fails() {
    journal_.reset();
    auto opened = open_file_journal(disk_, kFolder, kOptions);
    EXPECT_FALSE(opened.has_value());
    return opened.has_value() ? Error{Errc::internal, "it opened"} : opened.error();
  }
  void append(std::string_view facts) {
    const Status status = journal_->append(journal_->next(), Instant{++now_}, facts);
    ASSERT_TRUE(status.has_value()) << to_string(status.error());
  }
  void append_durably(std::string_view facts) {
    append(facts);
    ASSERT_TRUE(journal_->sync().has_value());
  }
  /// Fills segments with one round each.
  void fill_segments(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(journal_->prepare().has_value());
      append_durably(std::string(journal_->round_bytes_max(), static_cast<char>('a' + i)));
    }
  }
  std::vector<Seen> read(Position from = Position{1}) {
    std::vector<Seen> seen;
    const Status status = journal_->read(from, [&](const Round& round) -> Status {
      seen.push_back({round.position.value, round.now.ns, std::string(round.facts)});
      return {};
    });
    EXPECT_TRUE(status.has_value()) << to_string(status.error());
    return seen;
  }
  std::vector<std::string> files(std::string_view suffix) {
    auto names = disk_.list(kFolder).value();
    std::erase_if(names, [&](const std::string& name) { return !name.ends_with(suffix); });
    return names;
  }
  static std::string segment_path(std::uint64_t first) {
    return kFolder + "/" + segment_name(Position{first});
  }

  FakeDisk disk_{1};
  std::unique_ptr<Journal> journal_;
  std::int64_t now_ = 0;
};

TEST_F(FileJournalTest, EmptyJournalBeginsAtPositionOne) {
  open_prepared();

  EXPECT_EQ(journal_->next(), Position{1});
  EXPECT_TRUE(read().empty());
  EXPECT_EQ(journal_->bytes_since(Position{1}), 0U);
}

TEST_F(FileJournalTest, RoundsAreReadBackInOrder) {
  open_prepared();
  append("one");
  append("");
  append_durably("three");
  open();

  EXPECT_EQ(journal_->next(), Position{4});
  EXPECT_EQ(read(), (std::vector<Seen>{{1, 1, "one"}, {2, 2, ""}, {3, 3, "three"}}));
  EXPECT_EQ(read(Position{3}), (std::vector<Seen>{{3, 3, "three"}}));
  EXPECT_TRUE(read(Position{4}).empty());
}

TEST_F(FileJournalTest, ReadStopsWhereTheJournalWasOpened) {
  open_prepared();
  append_durably("one");
  open_prepared();
  append_durably("two");

  EXPECT_EQ(read(), (std::vector<Seen>{{1, 1, "one"}}));
}

TEST_F(FileJournalTest, ReadPastTheEndIsRefused) {
  open();
  const Status status = journal_->read(Position{2}, [](const Round&) -> Status { return {}; });

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::round_not_found);
}

TEST_F(FileJournalTest, ErrorOfTheVisitorEndsTheReading) {
  open_prepared();
  append("one");
  append_durably("two");
  open();
  int visits = 0;
  const Status status = journal_->read(Position{1}, [&](const Round&) -> Status {
    ++visits;
    return Error{Errc::malformed, "no"};
  });

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::malformed);
  EXPECT_EQ(visits, 1);
}

// Two writers of one journal must notice each other, not overwrite each other.
TEST_F(FileJournalTest, AppendAtAnotherPositionIsRefused) {
  open_prepared();
  append("one");
  for (const std::uint64_t expected : {1U, 3U}) {
    const Status status = journal_->append(Position{expected}, Instant{1}, "x");
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Errc::position_taken);
  }
}

TEST_F(FileJournalTest, RoundLargerThanASegmentIsRefusedWithTheLimit) {
  open_prepared();
  const std::uint64_t limit = journal_->round_bytes_max();
  append(std::string(limit, 'x'));
  const Status status = journal_->append(Position{2}, Instant{1}, std::string(limit + 1, 'x'));

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::invalid_argument);
  EXPECT_NE(status.error().text.find(std::to_string(limit)), std::string::npos);
}

TEST_F(FileJournalTest, WithoutPreparedRoomAppendIsRefusedAndNothingChanges) {
  open();
  const Status status = journal_->append(Position{1}, Instant{1}, "x");

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::journal_full);
  ASSERT_TRUE(journal_->prepare().has_value());
  append_durably("x");
  EXPECT_EQ(journal_->next(), Position{2});
}

TEST_F(FileJournalTest, RoomLeavesTheReserveToWhatFreesData) {
  open_prepared();
  const std::uint64_t segment = journal_->round_bytes_max();
  EXPECT_EQ(journal_->room().additions, segment);
  EXPECT_EQ(journal_->room().everything, 2 * segment);

  append(std::string(segment - 1000, 'x'));  // The first prepared segment is in use now.
  EXPECT_EQ(journal_->room().additions, 1000 - kRoundHeaderBytes);
  EXPECT_EQ(journal_->room().everything, segment + 1000 - kRoundHeaderBytes);

  append(std::string(1000, 'x'));  // Does not fit any more: the reserve is in use now.
  EXPECT_EQ(journal_->room().additions, 0U);
  EXPECT_EQ(journal_->room().everything, segment - 1000 - kRoundHeaderBytes);

  ASSERT_TRUE(journal_->prepare().has_value());
  EXPECT_EQ(journal_->room().additions, 2 * segment - 1000 - kRoundHeaderBytes);
}

// Exactly the bytes that room() promises must fit, or a decided round could not be journaled.
TEST_F(FileJournalTest, RoundOfExactlyTheRoomFits) {
  for (std::size_t size = 0; size < 64; ++size) {
    open_prepared();
    append(std::string(size, 'x'));
    append(std::string(journal_->room().additions, 'x'));
    EXPECT_EQ(files(".journal").size(), 1U);
    for (const std::string& name : files("")) {
      ASSERT_TRUE(disk_.remove(kFolder + "/" + name).has_value());
    }
  }
}

TEST_F(FileJournalTest, OnAFullDiskPreparedRoomStaysUsable) {
  open_prepared();
  disk_.set_capacity(disk_.bytes_used());
  append_durably("one");
  const Status status = journal_->prepare();

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::disk_full);
  EXPECT_TRUE(files(".new").empty());
  EXPECT_GT(journal_->room().additions, 0U);
  append_durably("two");
  disk_.set_capacity(2 * kSegmentBytes + kSegmentBytes);
  EXPECT_TRUE(journal_->prepare().has_value());
}

TEST_F(FileJournalTest, OnAFullDiskTrimmedSegmentsGiveRoomAgain) {
  open_prepared();
  fill_segments(3);
  disk_.set_capacity(disk_.bytes_used());
  append_durably("reserve");
  append_durably("reserve");
  ASSERT_FALSE(journal_->prepare().has_value());

  ASSERT_TRUE(journal_->trim(Position{4}).has_value());
  EXPECT_TRUE(journal_->prepare().has_value());
  EXPECT_GT(journal_->room().additions, 0U);
}

TEST_F(FileJournalTest, TrimDropsWholeSegmentsAndRecyclesAFew) {
  open_prepared();
  fill_segments(6);
  ASSERT_TRUE(journal_->trim(Position{6}).has_value());

  EXPECT_EQ(files(".journal"), std::vector<std::string>{segment_name(Position{6})});
  EXPECT_EQ(files(".spare").size(), 1 + kOptions.spares_max);  // One of them is prepared.
  const Status status = journal_->read(Position{5}, [](const Round&) -> Status { return {}; });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::round_not_found);
}

TEST_F(FileJournalTest, TrimKeepsTheSegmentOfTheFirstRoundThatIsNeeded) {
  open_prepared();
  fill_segments(3);
  ASSERT_TRUE(journal_->trim(Position{2}).has_value());
  open();

  EXPECT_EQ(read(Position{2}).size(), 2U);
}

TEST_F(FileJournalTest, JournalTrimmedCompletelyKnowsItsNextPosition) {
  open_prepared();
  fill_segments(3);
  ASSERT_TRUE(journal_->trim(journal_->next()).has_value());
  disk_.crash();
  open_prepared();

  EXPECT_EQ(journal_->next(), Position{4});
  append_durably("four");
  open();
  EXPECT_EQ(read(Position{4}).size(), 1U);
}

// The successor may vanish in a crash; without the trimmed segment the journal would begin at 1
// again.
TEST_F(FileJournalTest, TrimKeepsASegmentUntilItsSuccessorIsDurable) {
  open_prepared();
  append_durably(std::string(journal_->round_bytes_max(), 'x'));
  append("the successor's first round");
  ASSERT_TRUE(journal_->trim(Position{2}).has_value());
  EXPECT_EQ(files(".journal").size(), 2U);

  ASSERT_TRUE(journal_->sync().has_value());
  ASSERT_TRUE(journal_->trim(Position{2}).has_value());
  EXPECT_EQ(files(".journal").size(), 1U);
}

TEST_F(FileJournalTest, RecycledSegmentShowsNothingOfItsFormerLife) {
  open_prepared();
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(journal_->prepare().has_value());
    append_durably(std::string(1000, 'x'));
  }
  ASSERT_TRUE(journal_->trim(journal_->next()).has_value());
  ASSERT_TRUE(journal_->prepare().has_value());
  const std::uint64_t created = disk_.bytes_used();
  const Position before = journal_->next();
  while (files(".journal").size() == 1) append_durably(std::string(1000, 'y'));
  open();

  EXPECT_EQ(disk_.bytes_used(), created);
  for (const Seen& seen : read(before)) EXPECT_EQ(seen.facts, std::string(1000, 'y'));
}

TEST_F(FileJournalTest, BytesSinceFollowsAppendAndTrim) {
  open_prepared();
  append(std::string(1000, 'x'));
  const std::uint64_t one = journal_->bytes_since(Position{1});
  EXPECT_EQ(one, round_bytes(1000));
  EXPECT_EQ(journal_->bytes_since(Position{2}), 0U);
  append_durably(std::string(1000, 'x'));
  EXPECT_EQ(journal_->bytes_since(Position{1}), 2 * one);
  open();
  EXPECT_EQ(journal_->bytes_since(Position{1}), 2 * one);
}

TEST_F(FileJournalTest, FailedSyncEndsTheJournal) {
  open_prepared();
  append("one");
  disk_.fail_sync_after(0);
  const auto first = journal_->sync();
  const auto second = journal_->sync();

  ASSERT_FALSE(first.has_value());
  EXPECT_EQ(first.error().code, Errc::io_error);
  EXPECT_FALSE(second.has_value());
  EXPECT_FALSE(journal_->append(Position{2}, Instant{1}, "two").has_value());
}

TEST_F(FileJournalTest, FailedWriteEndsTheJournal) {
  open_prepared();
  append("one");
  disk_.fail_write_after(0);

  EXPECT_FALSE(journal_->append(Position{2}, Instant{1}, "two").has_value());
  EXPECT_FALSE(journal_->append(Position{2}, Instant{1}, "two").has_value());
  EXPECT_FALSE(journal_->sync().has_value());
}

// After a crash of the process alone the rounds can be read, but maybe only from the system's
// memory.
TEST_F(FileJournalTest, WhatWasReadAfterAKillSurvivesACrash) {
  open_prepared();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(journal_->prepare().has_value());
    append(std::string(journal_->round_bytes_max(), 'x'));
  }
  disk_.kill();
  open();
  ASSERT_EQ(read().size(), 3U);
  disk_.crash();
  open();

  EXPECT_EQ(read().size(), 3U);
}

TEST_F(FileJournalTest, DamagedLastRoundIsATornTail) {
  open_prepared();
  append_durably("one");
  append_durably("two");
  disk_.flip_bit(segment_path(1), 8 * (kSegmentHeaderBytes + round_bytes(3) + kRoundHeaderBytes));
  open();

  EXPECT_EQ(journal_->next(), Position{2});
  EXPECT_EQ(read().size(), 1U);
}

// "three" says that "one" and "two" were durable, so "two" cannot be a torn write.
TEST_F(FileJournalTest, DamageBeforeTheDurableEndIsRefused) {
  open_prepared();
  append("one");
  append_durably("two");
  append_durably("three");
  const std::uint64_t offset = kSegmentHeaderBytes + round_bytes(3);
  disk_.flip_bit(segment_path(1), 8 * (offset + 4));
  const Error error = open_fails();

  EXPECT_EQ(error.code, Errc::journal_corrupt);
  EXPECT_NE(error.text.find(segment_path(1)), std::string::npos) << error.text;
  EXPECT_NE(error.text.find("offset " + std::to_string(offset)), std::string::npos) << error.text;
}

TEST_F(FileJournalTest, DamageIsRefusedWhenALaterSegmentKnowsBetter) {
  open_prepared();
  fill_segments(2);
  disk_.flip_bit(segment_path(1), 8 * (kSegmentHeaderBytes + kRoundHeaderBytes + 100));

  EXPECT_EQ(open_fails().code, Errc::journal_corrupt);
}

TEST_F(FileJournalTest, MissingSegmentIsRefused) {
  open_prepared();
  fill_segments(4);
  journal_.reset();
  ASSERT_TRUE(disk_.remove(segment_path(2)).has_value());
  const Error error = open_fails();

  EXPECT_EQ(error.code, Errc::journal_corrupt);
  EXPECT_NE(error.text.find("round 2"), std::string::npos) << error.text;
}

TEST_F(FileJournalTest, DamagedSegmentHeaderIsRefused) {
  open_prepared();
  append_durably("one");
  disk_.flip_bit(segment_path(1), 8 * 20);

  EXPECT_EQ(open_fails().code, Errc::journal_corrupt);
}

TEST_F(FileJournalTest, SegmentCutShortIsRefused) {
  open_prepared();
  append_durably("one");
  ASSERT_TRUE(disk_.open(segment_path(1)).value()->truncate(kSegmentBytes / 2).has_value());

  EXPECT_EQ(open_fails().code, Errc::journal_corrupt);
}

TEST_F(FileJournalTest, RenamedSegmentIsRefused) {
  open_prepared();
  append_durably("one");
  ASSERT_TRUE(disk_.rename(segment_path(1), segment_path(7)).has_value());

  EXPECT_EQ(open_fails().code, Errc::journal_corrupt);
}

TEST_F(FileJournalTest, UnknownSegmentNameIsRefused) {
  open();
  ASSERT_TRUE(disk_.create(kFolder + "/backup.journal").has_value());
  const Error error = open_fails();

  EXPECT_EQ(error.code, Errc::journal_corrupt);
  EXPECT_NE(error.text.find("backup.journal"), std::string::npos);
}

TEST_F(FileJournalTest, NewerFormatIsRefusedByName) {
  open_prepared();
  append_durably("one");
  disk_.flip_bit(segment_path(1), 8 * 8 + 1);  // Version 3.
  const Error error = open_fails();

  EXPECT_EQ(error.code, Errc::store_too_new);
  EXPECT_NE(error.text.find(segment_path(1)), std::string::npos) << error.text;
}

// The stale third round would otherwise follow the new second one, which ends where it begins.
TEST_F(FileJournalTest, RoundsBeyondACutNeverComeBack) {
  open_prepared();
  append("one");
  append("two");
  append_durably("three");  // Claims nothing: no sync came before it.
  disk_.flip_bit(segment_path(1), 8 * (kSegmentHeaderBytes + round_bytes(3) + 4));
  open_prepared();
  ASSERT_EQ(journal_->next(), Position{2});
  append_durably("TWO");
  open();

  EXPECT_EQ(read(), (std::vector<Seen>{{1, 1, "one"}, {2, 4, "TWO"}}));
}

TEST_F(FileJournalTest, SegmentsBeyondACutNeverComeBack) {
  open_prepared();
  append("one");
  append(std::string(journal_->round_bytes_max(), '2'));  // In the second segment, unsynced.
  disk_.kill();
  open();
  disk_.flip_bit(segment_path(1), 8 * (kSegmentHeaderBytes + 4));
  open_prepared();
  ASSERT_EQ(journal_->next(), Position{1});
  EXPECT_EQ(files(".journal").size(), 1U);
  append_durably("ONE");
  open();

  EXPECT_EQ(read(), (std::vector<Seen>{{1, 3, "ONE"}}));
}

TEST_F(FileJournalTest, SegmentsOfAnotherSizeStayReadable) {
  open_prepared();
  append_durably("one");
  auto opened = open_file_journal(disk_, kFolder, {.segment_bytes = 2 * kSegmentBytes});
  ASSERT_TRUE(opened.has_value());
  journal_ = *std::move(opened);
  ASSERT_TRUE(journal_->prepare().has_value());
  append_durably(std::string(journal_->round_bytes_max(), 'x'));
  open();

  EXPECT_EQ(read().size(), 2U);
}

TEST_F(FileJournalTest, SegmentSizeOutOfItsLimitsIsRefused) {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{10000}, std::uint64_t{8} << 30U}) {
    const auto opened = open_file_journal(disk_, kFolder, {.segment_bytes = bytes});
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::invalid_argument);
  }
}

TEST_F(FileJournalTest, MissingParentFolderIsNamed) {
  const auto opened = open_file_journal(disk_, "absent/journal");

  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().text.find("absent"), std::string::npos);
}

// The checkpoint that makes room on a full disk needs some itself.
TEST_F(FileJournalTest, RoundsThatAddDataLeaveTheDiskSomeRoom) {
  JournalOptions options = kOptions;
  options.leave_free_bytes = 3 * kSegmentBytes;
  disk_.set_capacity(6 * kSegmentBytes);
  journal_ = open_file_journal(disk_, kFolder, options).value();
  ASSERT_TRUE(journal_->prepare().has_value());
  append_durably(std::string(journal_->round_bytes_max(), 'a'));
  ASSERT_TRUE(journal_->prepare().has_value());
  append_durably(std::string(journal_->round_bytes_max(), 'b'));
  const Status full = journal_->prepare();
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Errc::disk_full);
  EXPECT_EQ(journal_->room().additions, 0U);
  EXPECT_GE(disk_.free_bytes(kFolder).value(), options.leave_free_bytes);
  // Rounds that free data still go into the reserve.
  append_durably(std::string(journal_->round_bytes_max(), 'c'));
  EXPECT_FALSE(journal_->prepare().has_value());
  EXPECT_GT(journal_->room().everything, 0U);
}

// Connections can take all descriptors of the process: no data may be lost by that.
TEST_F(FileJournalTest, WithoutDescriptorsNothingFailsForGood) {
  open_prepared();
  append_durably(std::string(journal_->round_bytes_max(), 'a'));
  ASSERT_TRUE(journal_->prepare().has_value());
  disk_.set_opens_left(0);
  append(std::string(journal_->round_bytes_max(), 'b'));  // In the next segment.
  const auto synced = journal_->sync();
  ASSERT_FALSE(synced.has_value());
  EXPECT_EQ(synced.error().code, Errc::resource_exhausted);
  EXPECT_EQ(journal_->prepare().error().code, Errc::resource_exhausted);
  append(std::string(journal_->round_bytes_max(), 'c'));
  disk_.set_opens_left(std::nullopt);
  EXPECT_EQ(journal_->sync().value(), Position{4});
  ASSERT_TRUE(journal_->prepare().has_value());
  disk_.crash();
  open();
  EXPECT_EQ(read().size(), 3U);
}

}  // namespace
}  // namespace baton
