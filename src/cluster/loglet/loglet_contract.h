#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cluster/loglet/acceptor.h"
#include "cluster/loglet/entry.h"
#include "cluster/loglet/loglet.h"
#include "cluster/loglet/loglet_bench.h"
#include "cluster/loglet/pump.h"
#include "cluster/loglet/reading.h"

/// What every engine must do: one suite, for the engine in memory and for each real one. One file
/// of a program includes it, and instantiates LogletContract with its engines.
namespace baton::loglet {

class LogletContract : public testing::TestWithParam<LogletKind> {
 protected:
  using Answer = Loglet::Answer;
  using Kind = Loglet::Answer::Kind;

  void SetUp() override {
    bench_ = GetParam().make();
    ASSERT_NE(bench_, nullptr);
    client_ = bench_->client();
    ASSERT_NE(client_, nullptr);
  }

  LogletBench& bench() { return *bench_; }
  Loglet& client() { return *client_; }
  std::uint64_t next_request() { return ++requests_; }

  /// Waits for `count` answers other than news of the connection.
  std::vector<Answer> answers(Loglet& loglet, std::size_t count) {
    std::vector<Answer> found;
    const Instant until = bench_->now() + std::chrono::seconds{20};
    while (found.size() < count && bench_->now() < until) {
      for (Answer& answer : loglet.take_answers()) {
        if (answer.kind != Kind::connected) found.push_back(std::move(answer));
      }
      if (found.size() < count) bench_->wait();
    }
    EXPECT_EQ(found.size(), count);
    found.resize(count);
    return found;
  }
  Answer append(Loglet& loglet, const std::string& bytes,
                std::optional<std::uint64_t> expected = std::nullopt) {
    const std::uint64_t request = next_request();
    loglet.append(request, bytes, expected);
    Answer answer = answers(loglet, 1).front();
    EXPECT_EQ(answer.request, request);
    return answer;
  }
  std::vector<StoredEntry> read(Loglet& loglet, std::uint64_t after) {
    loglet.read(next_request(), after);
    Answer answer = answers(loglet, 1).front();
    EXPECT_EQ(answer.kind, Kind::entries);
    return std::move(answer.entries);
  }
  /// Everything behind `after`.
  std::vector<StoredEntry> read_all(Loglet& loglet, std::uint64_t after = 0) {
    std::vector<StoredEntry> all;
    while (true) {
      std::vector<StoredEntry> more = read(loglet, all.empty() ? after : all.back().sequence);
      if (more.empty() || HasFailure()) return all;
      std::ranges::move(more, std::back_inserter(all));
    }
  }

  /// Reads the log from its beginning: the rounds that count, and where an owner begins.
  std::pair<std::vector<std::string>, Appender::Begin> recover(Loglet& loglet) {
    std::vector<std::string> rounds;
    Reader reader({}, loglet, {}, 0);
    const Instant until = bench_->now() + std::chrono::seconds{20};
    while (!reader.done() && bench_->now() < until) {
      const Status turned = reader.turn(bench_->now(), [&](const Acceptor::AcceptedRound& round) {
        rounds.push_back(round.facts);
        return Status{};
      });
      EXPECT_TRUE(turned.has_value()) << to_string(turned.error());
      if (!turned.has_value()) break;
      bench_->wait();
    }
    EXPECT_TRUE(reader.done());
    return {std::move(rounds), Appender::Begin{.sequence = reader.sequence(),
                                               .read = reader.acceptor(),
                                               .boot = reader.acceptor().state().boot + 1,
                                               .node = 1}};
  }
  /// Turns the pumps until `holds`.
  bool run(const std::vector<Pump*>& pumps, const std::function<bool()>& holds) {
    const Instant until = bench_->now() + std::chrono::seconds{30};
    while (bench_->now() < until) {
      for (Pump* const pump : pumps) pump->turn(bench_->now());
      if (holds()) return true;
      bench_->wait();
    }
    return false;
  }

 private:
  std::unique_ptr<LogletBench> bench_;
  std::unique_ptr<Loglet> client_;
  std::uint64_t requests_ = 0;
};

TEST_P(LogletContract, SequencesCountFromOne) {
  EXPECT_TRUE(read(client(), 0).empty());
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    const Answer answer = append(client(), fmt::format("entry {}", sequence));
    EXPECT_EQ(answer.kind, Kind::stored);
    EXPECT_EQ(answer.sequence, sequence);
  }
}

TEST_P(LogletContract, ARefusedEntryIsNotStored) {
  EXPECT_EQ(append(client(), "first", 0).kind, Kind::stored);
  EXPECT_EQ(append(client(), "too early", 5).kind, Kind::refused);
  EXPECT_EQ(append(client(), "too late", 0).kind, Kind::refused);
  const Answer second = append(client(), "second", 1);
  EXPECT_EQ(second.kind, Kind::stored);
  EXPECT_EQ(second.sequence, 2U);
  EXPECT_EQ(read_all(client()), (std::vector<StoredEntry>{{1, "first"}, {2, "second"}}));
}

TEST_P(LogletContract, APipelineInWhichEachEntryExpectsTheOneBeforeItIsStored) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    client().append(next_request(), fmt::format("entry {}", i + 1), i);
  }
  std::uint64_t sum = 0;
  for (const Answer& answer : answers(client(), 8)) {
    EXPECT_EQ(answer.kind, Kind::stored);
    sum += answer.sequence;
  }
  EXPECT_EQ(sum, 36U);
  const auto stored = read_all(client());
  ASSERT_EQ(stored.size(), 8U);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(stored[i].bytes, fmt::format("entry {}", i + 1));
}

TEST_P(LogletContract, AReadBeginsBehindAnyEntry) {
  for (std::uint64_t i = 1; i <= 5; ++i) append(client(), fmt::format("entry {}", i));
  EXPECT_EQ(read_all(client(), 3), (std::vector<StoredEntry>{{4, "entry 4"}, {5, "entry 5"}}));
  EXPECT_TRUE(read(client(), 5).empty());
  EXPECT_TRUE(read(client(), 500).empty());
}

// More than one answer can carry, in entries as large as they may be, with any bytes.
TEST_P(LogletContract, LargeEntriesComeBackAsTheyWere) {
  const std::size_t size = client().entry_bytes_max();
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 12; ++i) {
    std::string bytes(size - i, '\0');
    for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(at * (i + 7));
    sent.push_back(std::move(bytes));
    ASSERT_EQ(append(client(), sent.back(), i).sequence, i + 1);
  }
  const auto stored = read_all(client());
  ASSERT_EQ(stored.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_TRUE(stored[i].bytes == sent[i]) << i;
}

TEST_P(LogletContract, ManyEntriesNeedSeveralReads) {
  for (std::uint64_t i = 0; i < 200; ++i) client().append(next_request(), std::to_string(i), {});
  answers(client(), 200);
  EXPECT_LT(read(client(), 0).size(), 200U);
  const auto stored = read_all(client());
  ASSERT_EQ(stored.size(), 200U);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(stored[i].sequence, i + 1);
}

TEST_P(LogletContract, AllClientsReadOneOrder) {
  const auto other = bench().client();
  for (std::uint64_t i = 0; i < 20; ++i) {
    client().append(next_request(), fmt::format("a{}", i), {});
    other->append(next_request(), fmt::format("b{}", i), {});
  }
  answers(client(), 20);
  answers(*other, 20);
  const auto stored = read_all(client());
  EXPECT_EQ(stored.size(), 40U);
  EXPECT_EQ(stored, read_all(*other));
}

TEST_P(LogletContract, WhatIsTrimmedIsGoneAndSequencesGoOn) {
  for (std::uint64_t i = 1; i <= 5; ++i) append(client(), fmt::format("entry {}", i));
  client().trim(next_request(), 4);
  EXPECT_EQ(answers(client(), 1).front().kind, Kind::trimmed);
  EXPECT_EQ(read_all(client()), (std::vector<StoredEntry>{{4, "entry 4"}, {5, "entry 5"}}));
  EXPECT_EQ(append(client(), "entry 6", 5).sequence, 6U);
}

TEST_P(LogletContract, AfterANewConnectionEverythingWorks) {
  append(client(), "first");
  client().redial();
  bool connected = false;
  for (int i = 0; i < 1000 && !connected; ++i) {
    for (const Answer& answer : client().take_answers()) {
      connected = connected || answer.kind == Kind::connected;
    }
    bench().wait();
  }
  EXPECT_TRUE(connected);
  EXPECT_EQ(append(client(), "second", 1).sequence, 2U);
  EXPECT_EQ(read_all(client()).size(), 2U);
}

// The engine's condition compares a count, and does not fence: of a pipeline that was sent before a
// new owner's fence, only the first entry is refused. Readers must skip the others.
TEST_P(LogletContract, ADisplacedPipelineIsSkippedByReaders) {
  const auto entry = [](std::uint64_t boot, std::uint64_t position, Chain prev, bool fence) {
    return encode_entry({.boot = boot,
                         .position = position,
                         .now = {},
                         .prev = prev,
                         .node = 1,
                         .fragment = 0,
                         .last = true,
                         .fence = fence,
                         .generation = 0},
                        fmt::format("round {} of boot {}", position, boot));
  };
  const auto chain = [](const std::string& bytes) { return decode_entry(bytes)->chain; };
  const std::string first = entry(1, 1, 0, true);
  const std::string old_2 = entry(1, 2, chain(first), false);
  const std::string old_3 = entry(1, 3, chain(old_2), false);
  const std::string old_4 = entry(1, 4, chain(old_3), false);
  const std::string fence = entry(2, 2, chain(first), true);
  const auto owner = bench().client();
  ASSERT_EQ(append(client(), first, 0).sequence, 1U);
  ASSERT_EQ(append(*owner, fence, 1).sequence, 2U);
  // The former owner does not know yet.
  client().append(next_request(), old_2, 1);
  client().append(next_request(), old_3, 2);
  client().append(next_request(), old_4, 3);
  std::size_t stored = 0;
  for (const Answer& answer : answers(client(), 3)) stored += answer.kind == Kind::stored ? 1 : 0;
  EXPECT_EQ(stored, 2U);
  append(*owner, entry(2, 3, chain(fence), false));
  const auto [rounds, begin] = recover(*owner);
  EXPECT_EQ(rounds, (std::vector<std::string>{"round 1 of boot 1", "round 2 of boot 2",
                                              "round 3 of boot 2"}));
  EXPECT_EQ(begin.read.strays(), 2U);
}

TEST_P(LogletContract, AnOwnersRoundsAreConfirmedAndRead) {
  auto [none, begin] = recover(client());
  EXPECT_TRUE(none.empty());
  Pump pump({}, client(), begin);
  std::vector<std::string> rounds;
  for (int i = 0; i < 60; ++i) {
    // Some need several entries.
    rounds.push_back(fmt::format("round {}", i) +
                     std::string(i % 20 == 19 ? kEntryBytesMax * 2 : 0, 'x'));
    pump.append(bench().now(), rounds.back());
  }
  EXPECT_TRUE(run({&pump}, [&] { return pump.appender().confirmed() == 61; }));
  EXPECT_EQ(pump.appender().bytes_unconfirmed(), 0U);
  EXPECT_TRUE(recover(*bench().client()).first == rounds);
}

// Two nodes hold themselves for the owner.
TEST_P(LogletContract, OfTwoOwnersOnlyTheLaterOneConfirms) {
  Pump old({}, client(), recover(client()).second);
  old.append(bench().now(), "fence 1");
  old.append(bench().now(), "a");
  ASSERT_TRUE(run({&old}, [&] { return old.appender().confirmed() == 3; }));
  const auto other = bench().client();
  Pump young({}, *other, recover(*other).second);
  young.append(bench().now(), "fence 2");
  ASSERT_TRUE(run({&young}, [&] { return young.appender().confirmed() == 4; }));
  for (int i = 0; i < 6; ++i) {
    old.append(bench().now(), fmt::format("void {}", i));
    young.append(bench().now(), fmt::format("b{}", i));
  }
  EXPECT_TRUE(run({&old, &young},
                  [&] { return old.appender().fenced() && young.appender().confirmed() == 10; }));
  EXPECT_EQ(old.appender().confirmed(), 3U);
  EXPECT_FALSE(young.appender().fenced());
  EXPECT_EQ(
      recover(*bench().client()).first,
      (std::vector<std::string>{"fence 1", "a", "fence 2", "b0", "b1", "b2", "b3", "b4", "b5"}));
}

}  // namespace baton::loglet
