// Many workers and many partitions, through the library.

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <baton/worker.h>
#include <fmt/format.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

/// A worker in this process that stops at once when told to.
class Member {
 public:
  Member(const std::string& store, std::uint32_t number, std::uint32_t partitions) {
    client::WorkerOptions options;
    options.store = store;
    options.group = fmt::format("scale-{}", partitions);
    options.id = fmt::format("w{:03}", number);
    options.partitions = partitions;
    options.timing = *client::worker_timing("default", store);
    client::WorkerCallbacks calls;
    calls.acquired = [this](PartitionNumber, Epoch) {
      ++held_;
      ++acquired_;
    };
    calls.revoking = [this](PartitionNumber partition, Epoch epoch, auto) {
      stop(partition, epoch);
    };
    calls.lost = [this](PartitionNumber partition, Epoch epoch, const std::string&) {
      ++lost_;
      stop(partition, epoch);
    };
    auto started = client::Worker::open(options, calls);
    EXPECT_TRUE(started.has_value()) << to_string(started.error());
    if (started.has_value()) worker_ = *std::move(started);
    started_ = true;
    started_.notify_all();
  }

  [[nodiscard]] std::uint32_t held() const { return held_; }
  [[nodiscard]] std::uint32_t acquired() const { return acquired_; }
  [[nodiscard]] std::uint32_t lost() const { return lost_; }
  [[nodiscard]] std::uint64_t requests() const { return worker_->stats().store_requests; }
  Status leave() { return worker_->close(); }

 private:
  void stop(PartitionNumber partition, Epoch epoch) {
    started_.wait(false);
    --held_;
    worker_->stopped(partition, epoch);
  }

  std::atomic<std::uint32_t> held_ = 0;
  std::atomic<std::uint32_t> acquired_ = 0;
  std::atomic<std::uint32_t> lost_ = 0;
  std::atomic<bool> started_ = false;
  std::optional<client::Worker> worker_;
};

class Scale : public OnBroker {
 protected:
  using Members = std::vector<std::unique_ptr<Member>>;

  Members start(std::uint32_t workers, std::uint32_t partitions) const {
    Members members;
    for (std::uint32_t i = 0; i < workers; ++i) {
      members.push_back(std::make_unique<Member>(store(), i, partitions));
    }
    return members;
  }
  static bool is_balanced(const Members& members, std::uint32_t partitions) {
    const auto share = static_cast<std::uint32_t>(partitions / members.size());
    std::uint32_t all = 0;
    for (const auto& member : members) {
      if (member->held() < share || member->held() > share + 1) return false;
      all += member->held();
    }
    return all == partitions;
  }
  static std::uint32_t acquired(const Members& members) {
    std::uint32_t sum = 0;
    for (const auto& member : members) sum += member->acquired();
    return sum;
  }
  /// One more joins, and only its share moves; it leaves, and only that moves again.
  static void join_and_leave(Members& members, std::unique_ptr<Member> joiner,
                             std::uint32_t partitions) {
    const std::uint32_t before = acquired(members);
    members.push_back(std::move(joiner));
    const auto share = static_cast<std::uint32_t>(partitions / members.size());
    ASSERT_TRUE(eventually([&] { return is_balanced(members, partitions); }, seconds{60}));
    EXPECT_EQ(acquired(members), before + share);
    ASSERT_TRUE(members.back()->leave().has_value());
    members.pop_back();
    ASSERT_TRUE(eventually([&] { return is_balanced(members, partitions); }, seconds{60}));
    EXPECT_EQ(acquired(members), before + share);
  }
  static std::uint64_t requests(const Members& members) {
    std::uint64_t sum = 0;
    for (const auto& member : members) sum += member->requests();
    return sum;
  }
};

TEST_F(Scale, ManyWorkersSettleBalancedAndTheStoreDoesNotFeelThePartitions) {
  const std::uint32_t workers = e2e::is_long_run() ? 64 : 16;
  const std::uint32_t many = e2e::is_long_run() ? 1'024 : 256;
  const std::uint32_t few = e2e::is_long_run() ? 64 : 16;
  std::vector<double> per_second;
  for (const std::uint32_t partitions : {few, many}) {
    const auto began = e2e::Clock::now();
    Members members = start(workers, partitions);
    ASSERT_TRUE(eventually([&] { return is_balanced(members, partitions); }, seconds{240}));
    const double settled = std::chrono::duration<double>(e2e::Clock::now() - began).count();
    std::this_thread::sleep_for(seconds{1});
    const std::uint64_t before = requests(members);
    constexpr seconds kQuiet{5};  // Four heartbeats, and one resync.
    std::this_thread::sleep_for(kQuiet);
    per_second.push_back(static_cast<double>(requests(members) - before) /
                         static_cast<double>(kQuiet.count()));
    EXPECT_TRUE(is_balanced(members, partitions));
    for (const auto& member : members) EXPECT_EQ(member->lost(), 0U);
    fmt::print(
        "[ {} workers, {} partitions ] settled after {:.1f} s; {:.1f} store requests a second\n",
        workers, partitions, settled, per_second.back());
    join_and_leave(members, std::make_unique<Member>(store(), workers, partitions), partitions);
    // All but one leave at once.
    std::vector<std::thread> leaving;
    for (std::size_t i = 1; i < members.size(); ++i) {
      leaving.emplace_back([&, i] {
        const auto left = members[i]->leave();
        EXPECT_TRUE(left.has_value()) << to_string(left.error());
      });
    }
    for (std::thread& thread : leaving) thread.join();
    EXPECT_TRUE(eventually([&] { return members[0]->held() == partitions; }));
    EXPECT_TRUE(members[0]->leave().has_value());
  }
  // Sixteen times as many partitions; a stalling machine delays some.
  EXPECT_LT(per_second[1], per_second[0] * 2);
}

}  // namespace
}  // namespace baton::worker_tests
