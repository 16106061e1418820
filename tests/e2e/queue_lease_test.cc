// A consumer of a queue that is cut off begins no message that another one has. It is a process of
// its own: this program, started again as `queue_lease_test --consumer ...`.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include <baton/consumer.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "e2e/tcp_proxy.h"

namespace baton::e2e {
namespace {

constexpr milliseconds kHandling{100};

milliseconds boot_time() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::duration_cast<milliseconds>(seconds{time.tv_sec} +
                                                  std::chrono::nanoseconds{time.tv_nsec});
}

/// Handles messages until it is ended, and writes which ones and when.
int run_consumer(const std::string& address, const std::string& queue, const std::string& name,
                 const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  client::ConsumerOptions options;
  options.in_flight_max = 100;
  options.on_error = [](const Error& error) { std::cout << to_string(error) << std::endl; };
  const auto broker =
      client::Broker::open({.address = address, .reconnect_max = milliseconds{200}});
  auto consumer = broker->queue(queue).consumer(options, [&](client::Delivery& delivery) {
    const std::string line =
        fmt::format("{} {} {}\n", name, delivery.message().payload, boot_time().count());
    if (::write(file, line.data(), line.size()) < 0) std::abort();
    std::this_thread::sleep_for(kHandling);
    return client::Outcome::ack();
  });
  if (!consumer) return 1;
  while (true) std::this_thread::sleep_for(seconds{1});
}

struct Line {
  std::string who;
  std::string message;
  milliseconds at{0};
};

class QueueLease : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  std::unique_ptr<ChildProcess> start(const std::string& name, const std::string& address) {
    return std::make_unique<ChildProcess>(
        ChildProcess::Options{.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                          "--consumer", address, "jobs", name, folder_ / "file"},
                              .out_file = folder_ / name});
  }
  [[nodiscard]] std::vector<Line> lines() const {
    std::vector<Line> all;
    std::istringstream in(read_file(folder_ / "file"));
    Line line;
    std::int64_t at = 0;
    while (in >> line.who >> line.message >> at) {
      line.at = milliseconds{at};
      all.push_back(line);
    }
    return all;
  }
  [[nodiscard]] std::size_t count(std::string_view who) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(lines(), [&](const Line& line) { return line.who == who; }));
  }

  BrokerProcess broker_{{"--shards", "1"}};
  TempFolder folder_;
};

// It holds messages for ten seconds of work. When its lease is over it leaves them alone; the other
// one gets them a second later. A visible break would have moved them at once.
TEST_F(QueueLease, CutOffItBeginsNoMessageThatAnotherHas) {
  broker_.create("jobs", {.visibility_timeout = seconds{120}});
  broker_.send("jobs", numbered("job-", 100));
  const std::string address = broker_.address();
  TcpProxy proxy(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto cut_off = start("A", proxy.address());
  ASSERT_TRUE(eventually([&] { return broker_.stats("jobs").leased > 90; }));
  ASSERT_TRUE(eventually([&] { return count("A") > 2; }));
  const auto other = start("B", address);

  const auto at = boot_time();
  proxy.freeze();
  ASSERT_TRUE(eventually([&] { return count("B") > 0; }, seconds{20}));
  EXPECT_NE(read_file(folder_ / "A").find("lease_lost"), std::string::npos)
      << read_file(folder_ / "A");
  proxy.thaw();
  ASSERT_TRUE(eventually([&] { return broker_.depth("jobs") == 0; }, seconds{40}));

  std::map<std::string, std::string> last;
  std::optional<milliseconds> first_of_other;
  for (const Line& line : lines()) {
    if (line.who == "B" && !first_of_other) first_of_other = line.at;
    // Connected again, A may get messages that no other consumer had.
    EXPECT_FALSE(line.who == "A" && last[line.message] == "B") << line.message;
    last[line.message] = line.who;
    if (line.who == "A" && line.at > at) {
      const bool stopped = line.at - at > milliseconds{4'200};
      EXPECT_FALSE(stopped && !first_of_other) << (line.at - at).count() << " ms after the cut";
    }
  }
  ASSERT_TRUE(first_of_other.has_value());
  fmt::print("B got A's messages {} ms after the cut\n", (*first_of_other - at).count());
  EXPECT_GT(*first_of_other - at, milliseconds{3'900});
}

}  // namespace
}  // namespace baton::e2e

int main(int argc, char** argv) {
  if (argc == 6 && std::string_view(argv[1]) == "--consumer") {
    return baton::e2e::run_consumer(argv[2], argv[3], argv[4], argv[5]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
