#include "cluster/loglet/pump.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/loglet/loglet_contract.h"
#include "cluster/loglet/memory_loglet.h"
#include "cluster/loglet/reading.h"

namespace baton::loglet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MemoryBench final : public LogletBench {
 public:
  std::unique_ptr<Loglet> client() override { return std::make_unique<MemoryLoglet>(log_); }
  void wait() override {
    for (int i = 0; i < 4; ++i) log_.arrive();
    now_ = now_ + milliseconds{1};
  }
  Instant now() override { return now_; }

 private:
  MemoryLog log_{1};
  Instant now_{1'700'000'000'000'000'000};
};

INSTANTIATE_TEST_SUITE_P(Engines, LogletContract,
                         testing::Values(LogletKind{
                             "memory", [] { return std::make_unique<MemoryBench>(); }}),
                         [](const auto& kind) { return kind.param.name; });

/// An owner on a MemoryLog, in a time of its own.
class PumpTest : public testing::Test {
 protected:
  /// Lets time pass in steps of 5 ms.
  void pass(Duration time, std::size_t messages = 20) {
    for (const Instant until = now_ + time; now_ < until; now_ = now_ + milliseconds{5}) {
      pump_->turn(now_);
      for (std::size_t i = 0; i < messages; ++i) log_.arrive();
    }
    pump_->turn(now_);
  }
  void begin(std::uint64_t boot = 1) {
    pump_ = std::make_unique<Pump>(
        Pump::Options{}, client_,
        Appender::Begin{.sequence = 0, .read = Acceptor({}), .boot = boot, .node = 1});
    pump_->append(now_, "fence");
  }
  [[nodiscard]] std::uint64_t confirmed() const { return pump_->appender().confirmed() - 1; }

  MemoryLog log_{1};
  MemoryLoglet client_{log_};
  std::unique_ptr<Pump> pump_;
  Instant now_{1'700'000'000'000'000'000};
};

TEST_F(PumpTest, AnswersThatGetLostAreReplacedByReading) {
  log_.set_faults({.answer_lost = 100});
  begin();
  pass(milliseconds{400});
  EXPECT_EQ(log_.entries().size(), 1U);
  EXPECT_EQ(confirmed(), 0U);
  log_.set_faults({});
  // Half a second after the request.
  pass(milliseconds{150});
  EXPECT_EQ(confirmed(), 1U);
  // Nothing was stored twice.
  EXPECT_EQ(log_.entries().size(), 1U);
  EXPECT_EQ(pump_->stalled_since(), Instant::never());
}

TEST_F(PumpTest, AnEngineThatIsDownIsDialledAgainEveryTwoSeconds) {
  log_.set_down(true);
  begin();
  const Instant began = now_;
  pass(milliseconds{1900});
  EXPECT_EQ(client_.redials(), 0U);
  pass(milliseconds{200});
  EXPECT_EQ(client_.redials(), 1U);
  pass(seconds{4});
  EXPECT_EQ(client_.redials(), 3U);
  EXPECT_EQ(confirmed(), 0U);
  EXPECT_LE(pump_->stalled_since(), began + milliseconds{5});
  log_.set_down(false);
  pass(seconds{3});
  EXPECT_EQ(confirmed(), 1U);
}

TEST_F(PumpTest, AnIdleOwnerDialsNobody) {
  begin();
  pass(seconds{10});
  EXPECT_EQ(confirmed(), 1U);
  EXPECT_EQ(client_.redials(), 0U);
  EXPECT_EQ(pump_->next_deadline(), Instant::never());
}

// An engine without a leader refuses at once: attempts must not become a storm.
TEST_F(PumpTest, AttemptsThatBringNothingArePaced) {
  log_.set_faults({.full = true});
  begin();
  pass(seconds{10});
  EXPECT_LE(pump_->appender().resolutions(), 120U);
  ASSERT_TRUE(pump_->unable().has_value());
  EXPECT_EQ(pump_->unable()->code, Errc::disk_full);
  log_.set_faults({});
  pass(seconds{3});
  EXPECT_EQ(confirmed(), 1U);
  EXPECT_FALSE(pump_->unable().has_value());
}

TEST_F(PumpTest, ANewConnectionIsReasonEnoughToRead) {
  log_.set_faults({.answer_lost = 100});
  begin();
  pass(milliseconds{50});
  log_.set_faults({});
  client_.redial();
  pass(milliseconds{50});
  EXPECT_EQ(confirmed(), 1U);
}

TEST_F(PumpTest, ADamagedCopyIsReadAgain) {
  log_.set_faults({.answer_lost = 100});
  begin();
  pass(milliseconds{100});
  log_.set_faults({.read_damaged = 50});
  pass(seconds{5});
  EXPECT_EQ(confirmed(), 1U);
  EXPECT_FALSE(pump_->broken().has_value());
}

TEST_F(PumpTest, ALogThatIsDamagedInEveryCopyStopsTheOwner) {
  log_.set_faults({.answer_lost = 100});
  begin();
  pass(milliseconds{100});
  log_.set_faults({.read_damaged = 100});
  pass(seconds{10});
  ASSERT_TRUE(pump_->broken().has_value());
  EXPECT_EQ(pump_->broken()->code, Errc::journal_corrupt);
  EXPECT_EQ(confirmed(), 0U);
}

/// Reads to the end, or to the first error.
Result<std::vector<std::string>> read_log(MemoryLog& log, const Place& from) {
  MemoryLoglet client(log);
  Reader reader({}, client, from, 0);
  std::vector<std::string> rounds;
  for (Instant now{1}; !reader.done(); now = now + milliseconds{5}) {
    BATON_TRY_STATUS(reader.turn(now, [&](const Acceptor::AcceptedRound& round) {
      rounds.push_back(round.facts);
      return Status{};
    }));
    for (int i = 0; i < 20; ++i) log.arrive();
  }
  return rounds;
}

class ReaderTest : public PumpTest {
 protected:
  void SetUp() override {
    begin();
    for (int i = 1; i <= 9; ++i) {
      pump_->append(now_, fmt::format("round {}", i));
      pass(milliseconds{20});
      if (i == 4) place_ = pump_->appender().place();
    }
    ASSERT_EQ(confirmed(), 10U);
  }
  Place place_;
};

TEST_F(ReaderTest, GoesOnAtAPlaceThatWasKept) {
  const auto rounds = read_log(log_, place_);
  ASSERT_TRUE(rounds.has_value()) << to_string(rounds.error());
  EXPECT_EQ(rounds->size(), 5U);
  EXPECT_EQ(rounds->front(), "round 5");
}

TEST_F(ReaderTest, SurvivesLostAnswersAndShortReads) {
  log_.set_faults({.request_lost = 30, .answer_lost = 30, .read_damaged = 5});
  const auto rounds = read_log(log_, {});
  ASSERT_TRUE(rounds.has_value()) << to_string(rounds.error());
  EXPECT_EQ(rounds->size(), 10U);
}

// A reader that was given up leaves requests behind, whose answers come late.
TEST_F(ReaderTest, IgnoresAnswersToAReaderThatIsGone) {
  MemoryLoglet client(log_);
  const auto nothing = [](const Acceptor::AcceptedRound&) { return Status{}; };
  {
    Reader gone({}, client, place_, 0);
    ASSERT_TRUE(gone.turn(Instant{1}, nothing).has_value());
  }
  Reader reader({}, client, {}, 0);
  std::size_t rounds = 0;
  for (Instant now{2}; !reader.done(); now = now + milliseconds{5}) {
    const Status turned = reader.turn(now, [&](const Acceptor::AcceptedRound&) {
      ++rounds;
      return Status{};
    });
    ASSERT_TRUE(turned.has_value()) << to_string(turned.error());
    for (int i = 0; i < 20; ++i) log_.arrive();
  }
  EXPECT_EQ(rounds, 10U);
}

// What this node applied is not in the log any more: it must not go on from there.
TEST_F(ReaderTest, NoticesThatTheLogLostItsEnd) {
  log_.lose_from(3);
  const auto rounds = read_log(log_, place_);
  ASSERT_FALSE(rounds.has_value());
  EXPECT_EQ(rounds.error().code, Errc::journal_corrupt);
  EXPECT_NE(rounds.error().text.find("entry 5 is missing"), std::string::npos)
      << rounds.error().text;
}

TEST_F(ReaderTest, NoticesAnotherLog) {
  Place elsewhere = place_;
  elsewhere.state.chain ^= 1;
  const auto rounds = read_log(log_, elsewhere);
  ASSERT_FALSE(rounds.has_value());
  EXPECT_NE(rounds.error().text.find("entry 5 is another one"), std::string::npos);
}

TEST_F(ReaderTest, NoticesThatTheBeginningWasTrimmed) {
  client_.trim(1, 4);
  log_.arrive();
  const auto rounds = read_log(log_, {});
  ASSERT_FALSE(rounds.has_value());
  EXPECT_NE(rounds.error().text.find("begins with entry 4"), std::string::npos)
      << rounds.error().text;
}

/// Two nodes around an engine that loses, delays, repeats and reorders: nodes crash, take over and
/// are fenced; in the end every round that was confirmed is read, at its place.
class PumpWorld {
 public:
  PumpWorld(std::uint64_t seed, const MemoryFaults& faults)
      : random_(seed), faults_(faults), log_(seed, faults) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ = now_ + milliseconds{random_.below(60)};
      for (std::uint64_t k = random_.below(6); k > 0; --k) log_.arrive();
      Node& node = nodes_[random_.below(nodes_.size())];
      switch (random_.below(40)) {
        case 0: node = {}; break;  // It crashes.
        case 1: log_.set_down(random_.chance(1, 3)); break;
        case 2:
          if (node.pump) node.client->redial();
          break;
        case 3:
        case 4:
          if (!node.pump || node.pump->appender().fenced()) take_over(node);
          break;
        default: work(node);
      }
    }
    heal();
  }
  [[nodiscard]] std::size_t confirmed() const { return confirmed_.size(); }

 private:
  struct Node {
    std::unique_ptr<MemoryLoglet> client;
    std::unique_ptr<Reader> reader;
    std::unique_ptr<Pump> pump;
    std::map<std::uint64_t, std::string> rounds;  // By position.
    std::uint64_t next = 0;
  };

  void take_over(Node& node) {
    node = {};
    node.client = std::make_unique<MemoryLoglet>(log_);
    node.reader = std::make_unique<Reader>(Patience{}, *node.client, Place{}, 0);
  }
  void work(Node& node) {
    if (node.reader) {
      const auto nothing = [](const Acceptor::AcceptedRound&) { return Status{}; };
      const Status turned = node.reader->turn(now_, nothing);
      ASSERT_TRUE(turned.has_value()) << to_string(turned.error());
      if (node.reader->done()) begin(node);
      return;
    }
    if (!node.pump) return;
    if (node.rounds.size() < 60 && node.pump->appender().bytes_unconfirmed() < 4000) append(node);
    node.pump->turn(now_);
    ASSERT_FALSE(node.pump->broken().has_value()) << to_string(*node.pump->broken());
    for (const auto& [position, facts] : node.rounds) {
      if (position >= node.pump->appender().confirmed()) break;
      ASSERT_EQ(confirmed_.try_emplace(position, facts).first->second, facts)
          << "two rounds were confirmed at " << position;
    }
  }
  void begin(Node& node) {
    Pump::Options options;
    options.appender.entry_bytes_max = kEntryHeaderBytes + 100;
    const Acceptor read = node.reader->acceptor();
    boot_ = std::max(boot_, read.state().boot) + 1;
    node.pump = std::make_unique<Pump>(
        options, *node.client,
        Appender::Begin{
            .sequence = node.reader->sequence(), .read = read, .boot = boot_, .node = 1});
    node.next = read.state().position;
    node.reader.reset();
    append(node, 10);
  }
  void append(Node& node, std::optional<std::size_t> size = {}) {
    const std::string facts =
        std::to_string(random_.next()) + std::string(size ? *size : random_.below(300), 'x');
    node.rounds[node.next++] = facts;
    node.pump->append(now_, facts);
  }
  /// Everything works again: what is confirmed must be there, and a new owner must get on.
  void heal() {
    log_.set_down(false);
    log_.set_faults({});
    Node& node = nodes_.front();
    take_over(node);
    const auto is_done = [&] {
      return node.pump && (node.pump->appender().idle() || node.pump->appender().fenced());
    };
    for (int i = 0; i < 4000 && !is_done(); ++i) {
      now_ = now_ + milliseconds{20};
      while (log_.arrive()) {
      }
      work(node);
      if (testing::Test::HasFailure()) return;
      if (node.pump && node.pump->appender().fenced()) take_over(node);
    }
    EXPECT_TRUE(is_done()) << "stuck after everything was healed";
    Acceptor acceptor({});
    std::map<std::uint64_t, std::string> accepted;
    for (const std::string& bytes : log_.entries()) {
      if (acceptor.take(*decode_entry(bytes)) == Acceptor::Verdict::round) {
        accepted[acceptor.round().position] = acceptor.round().facts;
      }
    }
    for (const auto& [position, facts] : confirmed_) {
      ASSERT_EQ(accepted[position], facts) << "round " << position << " was confirmed and is lost";
    }
  }

  Random random_;
  MemoryFaults faults_;
  MemoryLog log_;
  std::vector<Node> nodes_ = std::vector<Node>(2);
  std::uint64_t boot_ = 0;
  Instant now_{1'700'000'000'000'000'000};
  std::map<std::uint64_t, std::string> confirmed_;
};

TEST(PumpWorldTest, WhatIsConfirmedStaysAndNobodyIsStuck) {
  std::size_t confirmed = 0;
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    PumpWorld world(seed, {.request_lost = seed % 15,
                           .request_twice = seed % 7,
                           .answer_lost = seed % 20,
                           .reordered = seed % 40,
                           .read_short = seed % 30,
                           .read_damaged = seed % 3,
                           .unable = seed % 5,
                           .conditional = seed % 4 != 0});
    world.run(1500);
    confirmed += world.confirmed();
  }
  EXPECT_GT(confirmed, 3000U);
}

}  // namespace
}  // namespace baton::loglet
