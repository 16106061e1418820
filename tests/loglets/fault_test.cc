// Owners whose NATS servers are killed and stopped while entries are in flight. Everything that
// was confirmed must be read afterwards, once, at its place.

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cluster/loglet/pump.h"
#include "cluster/loglet/reading.h"
#include "loglets/nats_bench.h"
#include "stores/programs.h"

namespace baton::loglets {
namespace {

using loglet::Acceptor;
using loglet::Appender;
using loglet::Loglet;
using loglet::Pump;
using loglet::Reader;

std::string facts_of(std::uint64_t boot, std::uint64_t position) {
  return fmt::format("{}/{} ", boot, position) + std::string(position * 7919 % 20'000, 'x');
}

struct Read {
  std::vector<std::string> rounds;  // Position 1 first.
  Appender::Begin begin;
};

Read read_log(NatsBench& bench, Loglet& client) {
  Read read{.rounds = {}, .begin = {.sequence = 0, .read = Acceptor({}), .boot = 0, .node = 1}};
  Reader reader({}, client, {}, 0);
  const Instant until = bench.now() + seconds{60};
  while (!reader.done() && bench.now() < until) {
    const Status turned = reader.turn(bench.now(), [&](const Acceptor::AcceptedRound& round) {
      EXPECT_EQ(round.position, read.rounds.size() + 1);
      read.rounds.push_back(round.facts);
      return Status{};
    });
    EXPECT_TRUE(turned.has_value()) << to_string(turned.error());
    if (!turned.has_value()) break;
    bench.wait();
  }
  EXPECT_TRUE(reader.done());
  read.begin = {.sequence = reader.sequence(),
                .read = reader.acceptor(),
                .boot = reader.acceptor().state().boot + 1,
                .node = 1};
  return read;
}

/// Appends rounds for as long as it lives, on a thread of its own.
class Owner {
 public:
  explicit Owner(NatsBench& bench) : bench_(bench), client_(bench.client()) {
    const Read read = read_log(bench, *client_);
    boot_ = read.begin.boot;
    next_ = read.begin.read.state().position;
    pump_ = std::make_unique<Pump>(Pump::Options{}, *client_, read.begin);
    thread_ = std::thread([this] { run(); });
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { stop(); }

  /// Waits until `more` further rounds are confirmed.
  bool wait_for(std::uint64_t more, seconds within = seconds{40}) {
    const std::uint64_t goal = confirmed_ + more;
    return e2e::eventually([&] { return confirmed_ >= goal; }, within);
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Frozen, as a stopped process: what is in flight goes on without it.
  void freeze(bool frozen) { frozen_ = frozen; }
  [[nodiscard]] bool fenced() const { return fenced_; }
  [[nodiscard]] std::uint64_t boot() const { return boot_; }
  [[nodiscard]] std::uint64_t resolutions() const { return pump_->appender().resolutions(); }
  /// What every reader must find; after stop().
  void check(const std::vector<std::string>& rounds) const {
    ASSERT_GE(rounds.size() + 1, confirmed_at_) << "confirmed rounds are missing";
    for (std::uint64_t position = began_at_; position < confirmed_at_; ++position) {
      ASSERT_TRUE(rounds[position - 1] == facts_of(boot_, position)) << "round " << position;
    }
  }

 private:
  void run() {
    began_at_ = confirmed_at_ = next_;
    while (!stopping_) {
      if (frozen_) {
        bench_.wait();
        continue;
      }
      const Appender& appender = pump_->appender();
      while (next_ < appender.confirmed() + 8) {
        pump_->append(bench_.now(), facts_of(boot_, next_));
        ++next_;
      }
      pump_->turn(bench_.now());
      ASSERT_FALSE(pump_->broken().has_value()) << to_string(*pump_->broken());
      confirmed_ += appender.confirmed() - confirmed_at_;
      confirmed_at_ = appender.confirmed();
      fenced_ = appender.fenced();
      bench_.wait();
    }
  }

  NatsBench& bench_;
  std::unique_ptr<Loglet> client_;
  std::unique_ptr<Pump> pump_;
  std::uint64_t boot_ = 0;
  std::uint64_t next_ = 1;
  std::uint64_t began_at_ = 1;
  std::uint64_t confirmed_at_ = 1;
  std::atomic<std::uint64_t> confirmed_ = 0;
  std::atomic<bool> fenced_ = false;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

void report(std::string_view what, NatsBench& bench, const Owner& owner) {
  const auto client = bench.client();
  const Read read = read_log(bench, *client);
  owner.check(read.rounds);
  fmt::print("  {}: {} rounds in {} entries, {} strays, {} resolutions\n", what, read.rounds.size(),
             read.begin.sequence, read.begin.read.strays(), owner.resolutions());
}

class LogFaults : public testing::Test {
 protected:
  void start(int members) {
    if (const auto program = stores::nats_program(kNatsMin); !program.missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << program.missing;
    }
    server_ = start_nats(members);
    ASSERT_NE(server_, nullptr);
    bench_ = NatsBench::make(*server_);
    ASSERT_NE(bench_, nullptr);
  }
  /// The member that leads the log's stream.
  stores::Member* leader() {
    const auto link = connect(*server_);
    const auto info = link->api("$JS.API.STREAM.INFO." + loglet::log_stream(bench_->name()), "",
                                coord::Deadline(seconds{20}));
    if (!info.has_value()) return nullptr;
    const auto cluster = info->value("cluster", nlohmann::json::object());
    for (std::size_t i = 0; i < server_->size(); ++i) {
      if (server_->member(i).name() == cluster.value("leader", "")) return &server_->member(i);
    }
    return nullptr;
  }

  std::unique_ptr<stores::Server> server_;
  std::unique_ptr<NatsBench> bench_;
};

TEST_F(LogFaults, ServerKilledWithEntriesInFlight) {
  start(1);
  if (IsSkipped()) return;
  Owner owner(*bench_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(owner.wait_for(50));
    server_->kill();
    ASSERT_TRUE(server_->start());
  }
  ASSERT_TRUE(owner.wait_for(50));
  owner.stop();
  EXPECT_FALSE(owner.fenced());
  report("killed 3 times", *bench_, owner);
}

// A stopped server neither answers nor closes its connections. Awake, it takes what was sent.
TEST_F(LogFaults, ServerStoppedWithEntriesInFlight) {
  start(1);
  if (IsSkipped()) return;
  Owner owner(*bench_);
  for (const milliseconds stopped : {milliseconds{700}, milliseconds{3500}}) {
    ASSERT_TRUE(owner.wait_for(50));
    server_->pause();
    std::this_thread::sleep_for(stopped);
    server_->resume();
  }
  ASSERT_TRUE(owner.wait_for(50));
  owner.stop();
  EXPECT_FALSE(owner.fenced());
  report("stopped twice", *bench_, owner);
}

TEST_F(LogFaults, AnOwnerThatWasFrozenFindsItselfFenced) {
  start(1);
  if (IsSkipped()) return;
  Owner old(*bench_);
  ASSERT_TRUE(old.wait_for(50));
  old.freeze(true);
  // Entries of the former owner may still arrive: then the new one must read on, and try again.
  auto young = std::make_unique<Owner>(*bench_);
  for (int i = 0; i < 20 && !young->wait_for(50, seconds{5}); ++i) {
    young = std::make_unique<Owner>(*bench_);
  }
  old.freeze(false);
  EXPECT_TRUE(e2e::eventually([&] { return old.fenced(); }));
  EXPECT_TRUE(young->wait_for(50));
  old.stop();
  young->stop();
  EXPECT_FALSE(young->fenced());
  EXPECT_GT(young->boot(), old.boot());
  const auto client = bench_->client();
  old.check(read_log(*bench_, *client).rounds);
  report("taken over", *bench_, *young);
}

// Minutes: only with BATON_LONG.
TEST_F(LogFaults, ClusterLosesLeadersAndAllMembers) {
  if (!e2e::is_long_run()) GTEST_SKIP() << "only with BATON_LONG";
  start(3);
  if (IsSkipped()) return;
  Owner owner(*bench_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(owner.wait_for(100));
    stores::Member* const killed = leader();
    ASSERT_NE(killed, nullptr);
    killed->kill();
    ASSERT_TRUE(owner.wait_for(100)) << "after the leader was killed";
    ASSERT_TRUE(killed->start());
    ASSERT_TRUE(e2e::eventually([&] { return killed->is_current(); }, seconds{60}));
  }
  stores::Member* const stopped = leader();
  ASSERT_NE(stopped, nullptr);
  stopped->pause();
  EXPECT_TRUE(owner.wait_for(100)) << "after the leader was stopped";
  stopped->resume();
  ASSERT_TRUE(owner.wait_for(100));
  server_->kill();
  ASSERT_TRUE(server_->start());
  ASSERT_TRUE(owner.wait_for(100, seconds{60})) << "after all were killed";
  owner.stop();
  EXPECT_FALSE(owner.fenced());
  report("cluster of three", *bench_, owner);
}

}  // namespace
}  // namespace baton::loglets
