// A consumer that is cut off stops before another one has its seat. Consumers are processes of
// their own (this program, started again as `session_lease_test --consumer ...`), each with its own
// trouble; all write what they handle into one file per stream, in the order of the writes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <thread>

#include <baton/broker.h>
#include <baton/stream_consumer.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/tcp_proxy.h"

namespace baton::e2e {
namespace {

using client::Broker;

/// The clock that all processes of this machine share, and that goes on while they are stopped.
milliseconds boot_time() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::duration_cast<milliseconds>(seconds{time.tv_sec} +
                                                  std::chrono::nanoseconds{time.tv_nsec});
}

/// `--consumer ADDRESS STREAM NAME FILE HANDOVER CHECK`: handles records until it is ended.
int run_consumer(std::span<char*> arguments) {
  const std::string name = arguments[2];
  const int file = ::open(arguments[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const bool checks = std::string_view(arguments[5]) == "check";
  client::StreamConsumerOptions options;
  options.group = "g";
  options.owner = name;
  options.single_active = true;
  options.from = client::StartFrom::first();
  options.credit_batches = 4;
  if (std::string_view(arguments[4]) == "strict") options.handover = client::Handover::strict;
  options.on_losing = [](PartitionNumber) {
    std::cout << "losing " << boot_time().count() << std::endl;
  };
  options.on_error = [](const Error& error) {
    std::cout << "error " << to_string(error) << std::endl;
  };
  std::atomic<client::StreamConsumer*> self = nullptr;
  const auto broker =
      client::Broker::open({.address = arguments[0], .reconnect_max = milliseconds{200}});
  auto consumer = broker->stream(arguments[1]).consumer(options, [&](client::RecordBatch& batch) {
    while (self == nullptr) std::this_thread::yield();
    for (const client::Record& record : batch.records) {
      const auto began = boot_time();
      // Between two records of a batch the SDK cannot stop the handler; lease() tells if it is
      // asked.
      if (checks && !self.load()->lease().is_valid) return;
      const std::string line =
          fmt::format("{} {} {} {}\n", name, batch.epoch.value, record.offset.value, began.count());
      if (::write(file, line.data(), line.size()) < 0) std::abort();
    }
  });
  if (!consumer) return 1;
  self = &*consumer;
  while (true) std::this_thread::sleep_for(seconds{1});
}

struct Line {
  std::string who;
  std::uint64_t epoch = 0;
  std::int64_t offset = 0;
  milliseconds began{0};
};

/// A stream with two consumers, A and B. A comes first, and reaches the broker through a proxy.
class Pair {
 public:
  Pair(BrokerProcess& broker, std::string stream, std::string handover = "at-once",
       std::string check = "trust", milliseconds latency = milliseconds{0})
      : broker_(broker),
        stream_(std::move(stream)),
        handover_(std::move(handover)),
        check_(std::move(check)),
        proxy_(std::stoi(broker.address().substr(broker.address().rfind(':') + 1)), latency) {
    auto made = Broker::open(broker.connection());
    client_ = std::make_unique<Broker>(*std::move(made));
    const auto created = client_->stream(stream_).create(1, {.fsync = "never"});
    EXPECT_TRUE(created.has_value()) << to_string(created.error());
  }

  /// `environment` as in ChildProcess::Options.
  void start_a(std::vector<std::string> environment = {}) {
    a_ = start("A", proxy_.address(), std::move(environment));
  }
  void start_b() { b_ = start("B", broker_.address(), {}); }
  /// Appends one record.
  void append() {
    std::vector<client::NewRecord> records(1);
    records[0].value = "v";
    (void)client_->stream(stream_).append(std::move(records));
  }
  bool has_written(std::string_view who, std::size_t lines = 1) const {
    return static_cast<std::size_t>(std::ranges::count(
               written(), who, [](const Line& line) { return line.who; })) >= lines;
  }
  [[nodiscard]] std::size_t members() const {
    const auto groups = client_->stream(stream_).group("g").describe();
    return groups && !groups->empty() ? groups->front().members.size() : 0;
  }
  [[nodiscard]] client::GroupInfo group() const {
    return client_->stream(stream_).group("g").describe().value().at(0);
  }
  [[nodiscard]] std::vector<Line> written() const {
    std::vector<Line> lines;
    std::istringstream in(read_file(folder_ / "file"));
    Line line;
    std::int64_t began = 0;
    while (in >> line.who >> line.epoch >> line.offset >> began) {
      line.began = milliseconds{began};
      lines.push_back(line);
    }
    return lines;
  }
  [[nodiscard]] std::string said(const std::string& who) const { return read_file(folder_ / who); }
  /// The time of B's first write.
  [[nodiscard]] std::optional<milliseconds> taken_over() const {
    for (const Line& line : written()) {
      if (line.who == "B") return line.began;
    }
    return std::nullopt;
  }
  /// When A was told that it loses its seat.
  [[nodiscard]] std::optional<milliseconds> told() const {
    const std::string text = said("A");
    const auto at = text.find("losing ");
    if (at == std::string::npos) return std::nullopt;
    return milliseconds{std::stoll(text.substr(at + 7))};
  }

  /// No write of an older epoch follows one of a newer. A process that was stopped in the middle of
  /// a write finishes it when it wakes: that one write began before `stopped`, and epochs exist to
  /// refuse it.
  void expect_in_order(milliseconds stopped = milliseconds{0}) const {
    std::uint64_t newest = 0;
    for (const Line& line : written()) {
      if (line.epoch < newest && line.began > stopped) {
        ADD_FAILURE() << stream_ << ": " << line.who << " wrote offset " << line.offset
                      << " under epoch " << line.epoch << " after epoch " << newest;
        return;
      }
      newest = std::max(newest, line.epoch);
    }
  }

  TcpProxy& proxy() { return proxy_; }
  ChildProcess& a() { return *a_; }
  ChildProcess& b() { return *b_; }
  const std::string& stream() const { return stream_; }

 private:
  std::unique_ptr<ChildProcess> start(const std::string& name, const std::string& address,
                                      std::vector<std::string> environment) {
    return std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = {std::filesystem::read_symlink("/proc/self/exe").string(), "--consumer", address,
                    stream_, name, folder_ / "file", handover_, check_},
        .out_file = folder_ / name,
        .environment = std::move(environment)});
  }

  BrokerProcess& broker_;
  const std::string stream_;
  const std::string handover_;
  const std::string check_;
  TempFolder folder_;
  TcpProxy proxy_;
  std::unique_ptr<Broker> client_;
  std::unique_ptr<ChildProcess> a_;
  std::unique_ptr<ChildProcess> b_;
};

/// Appends to all streams until it is destroyed.
class Appending {
 public:
  explicit Appending(std::vector<Pair*> pairs)
      : thread_([this, pairs = std::move(pairs)] {
          while (!stops_) {
            for (Pair* pair : pairs) pair->append();
            std::this_thread::sleep_for(milliseconds{10});
          }
        }) {}
  Appending(const Appending&) = delete;
  Appending& operator=(const Appending&) = delete;
  ~Appending() {
    stops_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

/// A has the seat and works, B waits.
void seat_everybody(const std::vector<Pair*>& pairs,
                    const std::vector<std::string>& environment_of_a = {}) {
  for (Pair* pair : pairs) pair->start_a(environment_of_a);
  for (Pair* pair : pairs) {
    ASSERT_TRUE(eventually([&] { return pair->has_written("A"); })) << pair->stream();
  }
  for (Pair* pair : pairs) pair->start_b();
  for (Pair* pair : pairs) {
    ASSERT_TRUE(eventually([&] { return pair->members() == 2; })) << pair->stream();
  }
}

// All troubles at the same time, each for its own pair: a round costs as much as the longest.
void run_round(BrokerProcess& broker, int round) {
  const auto name = [&](std::string_view what) { return fmt::format("{}-{}", what, round); };
  Pair cut(broker, name("cut"));
  Pair one_way_up(broker, name("one-way-up"));
  Pair one_way_down(broker, name("one-way-down"));
  Pair slow(broker, name("slow"), "at-once", "trust", milliseconds{300});
  Pair stopped(broker, name("stopped"), "at-once", "check");
  Pair broken(broker, name("broken"));
  Pair strict(broker, name("strict"), "strict");
  Pair strict_cut(broker, name("strict-cut"), "strict");
  const std::vector<Pair*> silent{&cut, &one_way_up, &one_way_down, &slow, &strict_cut};
  const std::vector<Pair*> all{&cut,     &one_way_up, &one_way_down, &slow,
                               &stopped, &broken,     &strict,       &strict_cut};
  const Appending appending(all);
  seat_everybody(all);
  if (testing::Test::HasFatalFailure()) return;

  const auto at = boot_time();
  for (Pair* pair : {&cut, &slow, &strict_cut}) pair->proxy().freeze();
  one_way_up.proxy().freeze_up();
  one_way_down.proxy().freeze_down();
  stopped.a().pause();
  broken.proxy().reset();
  strict.a().kill();

  // A visible break moves the seat at once; a strict group waits for the rest of the lease.
  EXPECT_TRUE(eventually([&] { return broken.has_written("B"); }, seconds{10}));
  EXPECT_LT(broken.taken_over().value_or(at + seconds{99}) - at, seconds{3});
  EXPECT_EQ(strict.group().handover, client::Handover::strict);
  for (Pair* pair : all) {
    EXPECT_TRUE(eventually([&] { return pair->has_written("B"); }, seconds{20})) << pair->stream();
  }
  for (Pair* pair : {&cut, &one_way_up, &one_way_down, &slow, &stopped, &strict, &strict_cut}) {
    const auto took = pair->taken_over().value_or(at + seconds{99}) - at;
    fmt::print("{}: B took over after {} ms\n", pair->stream(), took.count());
    // A's last heartbeat is up to a second old; the lease is 5 s. Where only the broker's messages
    // are lost, A gives its call up after 4 s, and the broker is told.
    EXPECT_GT(took, milliseconds{pair == &one_way_down ? 2'500 : 3'500}) << pair->stream();
    EXPECT_LT(took, seconds{12}) << pair->stream();
  }
  for (Pair* pair : silent) {
    ASSERT_TRUE(pair->told().has_value()) << pair->stream();
    // It gives the call up, which the broker hears over the direction that is not cut; nothing was
    // handed out since its lease ended, and its program was told before.
    EXPECT_LE(*pair->told(), *pair->taken_over()) << pair->stream();
    fmt::print("{}: A was told {} ms before\n", pair->stream(),
               (*pair->taken_over() - *pair->told()).count());
    EXPECT_NE(pair->said("A").find("lease_lost"), std::string::npos) << pair->said("A");
  }

  // Everything that was in flight arrives after all.
  for (Pair* pair : silent) pair->proxy().thaw();
  stopped.a().signal(SIGCONT);
  std::this_thread::sleep_for(seconds{3});
  for (Pair* pair : silent) pair->expect_in_order();
  stopped.expect_in_order(at);
  strict.expect_in_order();
  // Each consumer that was cut off is back in its group, and waits.
  for (Pair* pair : silent) {
    EXPECT_TRUE(eventually([&] { return pair->members() == 2; })) << pair->stream();
  }
}

// Promise: a partition has one active consumer at work, whatever happens to its connection.
TEST(SessionLease, NobodyWorksUnderASeatThatAnotherHas) {
  BrokerProcess broker({"--shards", "1"});
  ASSERT_TRUE(broker.start()) << broker.log();
  const int rounds = is_long_run() ? 10 : 1;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    run_round(broker, round);
  }
}

// The worse of the two ways in which clocks can be wrong: the consumer believes that its lease
// lasts longer than it does, and the broker gives its seat away too soon.
TEST(SessionLease, AlsoNotWhenClocksRunOnePercentApart) {
  const std::string preload =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libclock_rate.so";
  if (!std::filesystem::exists(preload)) GTEST_SKIP() << "nothing is preloaded under a sanitizer";
  BrokerProcess broker({"--shards", "1"});
  broker.run_under({"/usr/bin/env", "LD_PRELOAD=" + preload, "CLOCK_RATE=1.01"});
  ASSERT_TRUE(broker.start()) << broker.log();
  Pair cut(broker, "cut");
  Pair stopped(broker, "stopped", "at-once", "check");
  const std::vector<Pair*> all{&cut, &stopped};
  const Appending appending(all);
  seat_everybody(all, {"LD_PRELOAD=" + preload, "CLOCK_RATE=0.99"});
  if (testing::Test::HasFatalFailure()) return;

  const auto at = boot_time();
  cut.proxy().freeze();
  stopped.a().pause();
  for (Pair* pair : all) {
    EXPECT_TRUE(eventually([&] { return pair->has_written("B"); }, seconds{20})) << pair->stream();
  }
  ASSERT_TRUE(cut.told().has_value());
  EXPECT_LE(*cut.told(), *cut.taken_over());
  fmt::print("clocks apart: B took over after {} ms; A was told {} ms before\n",
             (*cut.taken_over() - at).count(), (*cut.taken_over() - *cut.told()).count());
  cut.proxy().thaw();
  stopped.a().signal(SIGCONT);
  std::this_thread::sleep_for(seconds{2});
  cut.expect_in_order();
  stopped.expect_in_order(at);
}

// Its consumers cannot know whether it is frozen or they are cut off: they stop. When it wakes, it
// finds old heartbeats, which renew nothing, and gives the seats to consumers that return.
TEST(SessionLease, AFrozenBrokerStopsItsConsumersAndNobodyWorksTwice) {
  BrokerProcess broker({"--shards", "1"});
  ASSERT_TRUE(broker.start()) << broker.log();
  Pair pair(broker, "frozen", "at-once", "check");
  for (int i = 0; i < 100; ++i) pair.append();
  auto appending = std::make_unique<Appending>(std::vector<Pair*>{&pair});
  seat_everybody({&pair});
  if (testing::Test::HasFatalFailure()) return;

  const auto at = boot_time();
  broker.pause();
  ASSERT_TRUE(eventually([&] { return pair.told().has_value(); }, seconds{10}));
  std::this_thread::sleep_for(seconds{2});
  const auto awake = boot_time();
  broker.signal(SIGCONT);

  const std::size_t lines = pair.written().size();
  EXPECT_TRUE(eventually([&] { return pair.written().size() > lines + 20; }, seconds{30}));
  pair.expect_in_order();
  for (const Line& line : pair.written()) {
    EXPECT_FALSE(line.began > at + milliseconds{4'200} && line.began < awake) << line.began.count();
  }
}

// What an operator sees: who has a lease, for how long, and how the group hands over.
TEST(SessionLease, GroupDescribeShowsLeasesAndTheHandOver) {
  BrokerProcess broker({"--shards", "1"});
  ASSERT_TRUE(broker.start()) << broker.log();
  Pair pair(broker, "seen", "strict");
  pair.append();
  pair.start_a();
  ASSERT_TRUE(eventually([&] { return pair.has_written("A"); }));
  const auto member = pair.group().members.at(0);
  ASSERT_TRUE(member.lease_left.has_value());
  EXPECT_GT(*member.lease_left, seconds{1});
  EXPECT_LE(*member.lease_left, seconds{5});
  const auto text = broker.cli({"group", "describe", "seen", "g"});
  EXPECT_NE(text.out.find("single active, strict hand-over"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("LEASE"), std::string::npos) << text.out;
  // The others of its group must hand over as it does.
  const auto other = broker.cli({"stream", "subscribe", "seen", "--group", "g", "--single-active",
                                 "--handover", "at-once", "--max", "1", "--wait", "2s"});
  EXPECT_NE(other.exit_code, 0) << other.err;
  EXPECT_NE(other.err.find("handover must be the same"), std::string::npos) << other.err;
  const auto wrong = broker.cli(
      {"stream", "subscribe", "seen", "--group", "g", "--single-active", "--handover", "sometime"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("is not at-once or strict"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace baton::e2e

int main(int argc, char** argv) {
  if (argc == 8 && std::string_view(argv[1]) == "--consumer") {
    return baton::e2e::run_consumer(std::span(argv, 8).subspan(2));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
