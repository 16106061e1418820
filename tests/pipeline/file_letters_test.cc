// Dead letters in a file: written by several processes, and listed and removed meanwhile.
#include <atomic>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/letters.h"
#include "pipeline/local/file_dead_letters.h"
#include "pipeline/local/file_letter_store.h"

namespace baton::pipeline {
namespace {

class FileLetters : public ::testing::Test {
 protected:
  void write(const SomeLetters& letters) const {
    const auto target = FileDeadLetters::open(path_);
    ASSERT_TRUE(target.has_value()) << to_string(target.error());
    ASSERT_TRUE((*target)->write(letters.all()).has_value());
  }
  [[nodiscard]] std::unique_ptr<FileLetterStore> store() const {
    auto opened = FileLetterStore::open(path_);
    EXPECT_TRUE(opened.has_value()) << to_string(opened.error());
    return *std::move(opened);
  }
  RedriveCounts redrive(RedriveRequest request = {}) {
    request.pipeline = "orders";
    auto counts = pipeline::redrive(*store(), request, output_);
    EXPECT_TRUE(counts.has_value()) << to_string(counts.error());
    return counts.value_or(RedriveCounts{});
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> result;
    std::istringstream text(e2e::read_file(path_));
    for (std::string line; std::getline(text, line);) result.push_back(line);
    return result;
  }
  /// By their values.
  [[nodiscard]] std::multiset<std::string> redriven() const {
    std::multiset<std::string> values;
    for (const Record& record : output_.records) values.insert(record.value);
    return values;
  }

  e2e::TempFolder folder_;
  std::string path_ = folder_ / "dead";
  OutputInMemory output_;
};

// A dead letter that no source would accept must not hold up the others.
TEST_F(FileLetters, OneThatIsRefusedStaysAlone) {
  write(SomeLetters(5));
  output_.refused_value = "value3";
  const RedriveCounts counts = redrive();
  EXPECT_EQ(counts.redriven, 4U);
  EXPECT_EQ(counts.refused, 1U);
  EXPECT_EQ(counts.refused_texts,
            std::vector<std::string>{"orders/baton-stream:orders/0/3: too odd"});
  const SeenLetters left = read_all(*store());
  ASSERT_EQ(left.letters.size(), 1U);
  EXPECT_EQ(left.letters[0].record.offset, 3);
  EXPECT_EQ(redrive({.limit = 1}).redriven, 0U);
  EXPECT_EQ(lines().size(), 1U);
}

TEST_F(FileLetters, GoBackAsTheRecordsTheyWere) {
  SomeLetters letters(4);
  letters.record(1).value = std::string("\0\n\xff", 3);
  letters.record(1).headers = {{"same", "1"}, {"same", "\xff"}, {"baton-redrives", "1"}};
  write(letters);
  const RedriveCounts counts = redrive({.where = {{"stage", "schema"}}});
  EXPECT_EQ(counts.redriven, 2U);
  EXPECT_EQ(counts.other, 2U);
  ASSERT_EQ(output_.records.size(), 2U);
  EXPECT_EQ(output_.records[0].key, "key1");
  EXPECT_EQ(output_.records[0].value, letters.record(1).value);
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(output_.records[0].headers,
            (Headers{{"same", "1"}, {"same", "\xff"}, {"baton-redrives", "1"}}));
  EXPECT_EQ(output_.records[1].headers, (Headers{{"trace", "3"}, {"baton-redrives", "1"}}));
  const SeenLetters left = read_all(*store());
  ASSERT_EQ(left.letters.size(), 2U);
  EXPECT_EQ(left.letters[0].id, "orders/baton-stream:orders/0/0");
  EXPECT_EQ(lines().size(), 2U);
  EXPECT_EQ(redrive().redriven, 2U);
  EXPECT_EQ(std::filesystem::file_size(path_), 0U);
}

TEST_F(FileLetters, LimitsDryRunsAndTheLettersOfOthers) {
  write(SomeLetters(10));
  write(SomeLetters(5, "payments"));
  const std::string before = e2e::read_file(path_);
  EXPECT_EQ(redrive({.dry_run = true}).redriven, 10U);
  EXPECT_EQ(e2e::read_file(path_), before);
  EXPECT_EQ(redrive({.limit = 3}).redriven, 3U);
  EXPECT_EQ(lines().size(), 12U);
  const RedriveCounts none = redrive({.redrives_max = 0});
  EXPECT_EQ(none.worn_out, 7U);
  EXPECT_EQ(none.other, 5U);
  EXPECT_EQ(redrive().redriven, 7U);
  EXPECT_EQ(lines().size(), 5U);
  EXPECT_EQ(redriven().size(), 10U);
}

// It is unknown what it was: it is named, and stays byte for byte.
TEST_F(FileLetters, WhatIsNoLetterStays) {
  write(SomeLetters(1));
  const std::string garbage = "garbage\n\n{\"id\":1}\n# a comment\n" + std::string(3'000'000, 'x');
  e2e::write_file(path_, e2e::read_file(path_) + garbage);
  const SeenLetters seen = read_all(*store());
  EXPECT_EQ(seen.letters.size(), 1U);
  ASSERT_EQ(seen.unreadable.size(), 4U);
  EXPECT_NE(seen.unreadable[0].find("/dead, line 2: not a dead letter"), std::string::npos);
  EXPECT_NE(seen.unreadable[1].find("line 4: "), std::string::npos);
  EXPECT_NE(seen.unreadable[3].find("line 6: "), std::string::npos);
  // The last line was torn: the next write begins a new one.
  write(SomeLetters(2, "orders", 100));
  const RedriveCounts counts = redrive();
  EXPECT_EQ(counts.redriven, 3U);
  EXPECT_EQ(counts.unreadable, 4U);
  EXPECT_EQ(counts.unreadable_texts, seen.unreadable);
  EXPECT_EQ(e2e::read_file(path_), garbage + "\n");
}

// They are sent, but not confirmed.
TEST_F(FileLetters, StayUntilTheirRecordsAreConfirmed) {
  write(SomeLetters(10));
  const std::string before = e2e::read_file(path_);
  output_.down = true;
  const RedriveRequest request{.pipeline = "orders"};
  EXPECT_FALSE(pipeline::redrive(*store(), request, output_).has_value());
  EXPECT_EQ(e2e::read_file(path_), before);
  output_.down = false;
  EXPECT_EQ(redrive().redriven, 10U);
  EXPECT_EQ(lines().size(), 0U);
}

// Killed before it had cleaned up: letters crossed out by then are gone, and the rest is undone.
TEST_F(FileLetters, AnotherRunFinishesWhatAKilledOneBegan) {
  write(SomeLetters(4));
  std::string text = e2e::read_file(path_);
  text[0] = '\x18';
  text[text.find('\n', text.find('\n') + 1) + 1] = '\x18';
  e2e::write_file(path_, text);
  e2e::write_file(path_ + ".redriving", "half of the l");
  const std::string second = lines()[1];
  const SeenLetters seen = read_all(*store());
  EXPECT_EQ(seen.letters.size(), 2U);
  EXPECT_EQ(seen.unreadable.size(), 0U);
  EXPECT_EQ(redrive({.where = {{"offset", "3"}}}).redriven, 1U);
  EXPECT_EQ(e2e::read_file(path_), second + "\n");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".redriving"));
}

TEST_F(FileLetters, OneRedriveAtATime) {
  write(SomeLetters(2));
  Errc second = Errc::internal;
  output_.on_send = [&] {
    OutputInMemory other;
    second = pipeline::redrive(*store(), {.pipeline = "orders"}, other).error().code;
    EXPECT_EQ(other.records.size(), 0U);
  };
  EXPECT_EQ(redrive().redriven, 2U);
  EXPECT_EQ(second, Errc::failed_precondition);
}

// Links and permissions stay as they were.
TEST_F(FileLetters, TheFileBehindALinkIsReplacedAndNotTheLink) {
  std::string link = folder_ / "link";
  write(SomeLetters(2));
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(path_, link);
  std::swap(path_, link);
  EXPECT_EQ(redrive({.limit = 1}).redriven, 1U);
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(lines().size(), 1U);
}

// Two writers, as far as the locks know, while letters are removed all the time.
TEST_F(FileLetters, NothingIsLostWhileOthersWrite) {
  constexpr std::int64_t kEach = 300;
  write(SomeLetters(1, "orders", -1));
  std::atomic<int> writing{2};
  std::atomic<int> runs{0};
  std::vector<std::jthread> writers;
  for (std::int64_t writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&, writer] {
      const auto target = FileDeadLetters::open(path_);
      for (std::int64_t i = 0; i < kEach; ++i) {
        const SomeLetters one(1, "orders", (writer * kEach) + i);
        EXPECT_TRUE((*target)->write(one.all()).has_value());
        while (i == kEach / 2 && runs <= 3) std::this_thread::yield();
      }
      --writing;
    });
  }
  for (; writing > 0; ++runs) redrive();
  redrive();
  EXPECT_GT(runs, 3);
  EXPECT_EQ(lines().size(), 0U);
  const std::multiset<std::string> values = redriven();
  EXPECT_EQ(values.size(), (2U * kEach) + 1);
  EXPECT_EQ(std::set<std::string>(values.begin(), values.end()).size(), (2U * kEach) + 1);
}

TEST_F(FileLetters, WhatCannotBeReadIsSaid) {
  EXPECT_EQ(FileLetterStore::open(path_).error().code, Errc::not_found);
  EXPECT_EQ(FileLetterStore::open(path_ + "/x/y").error().code, Errc::not_found);
  const auto folder = FileLetterStore::open(folder_.path().string());
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ((*folder)->find("x").error().code, Errc::io_error);
  write(SomeLetters(1));
  EXPECT_EQ(store()->find("orders/baton-stream:orders/0/0")->record.value, "value0");
  EXPECT_EQ(store()->find("x").error().code, Errc::not_found);
}

}  // namespace
}  // namespace baton::pipeline
