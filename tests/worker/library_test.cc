// The library itself: in which order a worker's callbacks come, what they may do, and what
// may_act() returns meanwhile.

#include <algorithm>
#include <functional>
#include <future>
#include <mutex>
#include <utility>

#include <baton/worker.h>
#include <fmt/format.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

/// A worker that records its callbacks, and stops work only when the test says so.
class Member {
 public:
  struct Line {
    std::string word;
    PartitionNumber partition{};
    Epoch epoch{};
    bool could_act = false;  // During the callback.
    bool operator==(const Line&) const = default;
  };

  Member(const std::string& store, const std::string& id,
         std::function<void(client::Worker&)> on_renewed = {}) {
    client::WorkerOptions options;
    options.store = store;
    options.group = "orders";
    options.id = id;
    options.partitions = 2;
    options.timing = client::worker_timing("fast", store).value();
    client::WorkerCallbacks calls;
    calls.acquired = [this](PartitionNumber partition, Epoch epoch) {
      write("acquired", partition, epoch);
    };
    calls.revoking = [this](PartitionNumber partition, Epoch epoch, auto) {
      write("revoking", partition, epoch);
    };
    calls.lost = [this](PartitionNumber partition, Epoch epoch, const std::string&) {
      write("lost", partition, epoch);
    };
    calls.renewed = [this, on_renewed](auto) {
      if (on_renewed) on_renewed(worker());
    };
    std::promise<client::Worker*> ready;
    ready_ = ready.get_future();
    worker_ = client::Worker::open(options, calls).value();
    ready.set_value(&*worker_);
  }

  client::Worker& worker() { return *ready_.get(); }
  /// All callbacks about a partition so far, in order.
  [[nodiscard]] std::vector<Line> told(PartitionNumber partition) const {
    const std::scoped_lock lock(mutex_);
    std::vector<Line> found;
    std::ranges::copy_if(lines_, std::back_inserter(found),
                         [&](const Line& line) { return line.partition == partition; });
    return found;
  }
  /// Waits until the last callback of a partition is this one; returns the epoch.
  Epoch wait_for(const std::string& word, PartitionNumber partition, std::size_t lines) {
    EXPECT_TRUE(eventually([&] {
      const auto all = told(partition);
      return all.size() >= lines && all.back().word == word;
    })) << word
        << " " << partition.value;
    const auto all = told(partition);
    return all.empty() ? Epoch{} : all.back().epoch;
  }

 private:
  void write(const std::string& word, PartitionNumber partition, Epoch epoch) {
    const bool could_act = worker().may_act(partition, epoch);
    const std::scoped_lock lock(mutex_);
    lines_.push_back({word, partition, epoch, could_act});
  }

  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  std::shared_future<client::Worker*> ready_;
  std::optional<client::Worker> worker_;
};

using Lines = std::vector<Member::Line>;

constexpr PartitionNumber kZero{0};
constexpr PartitionNumber kOne{1};

class Library : public OnBroker {};

TEST_F(Library, MayActFromAcquiredUntilStopped) {
  Member first(store(), "w1");
  const Epoch epoch = first.wait_for("acquired", kOne, 1);
  client::Worker& worker = first.worker();
  EXPECT_TRUE(worker.may_act(kOne, epoch));
  EXPECT_FALSE(worker.may_act(kOne, Epoch{epoch.value - 1}));
  EXPECT_FALSE(worker.may_act(kOne, Epoch{epoch.value + 1}));
  EXPECT_FALSE(worker.may_act(kOne, Epoch{0}));
  EXPECT_FALSE(worker.may_act(PartitionNumber{2}, epoch)) << "there are two partitions";

  Member second(store(), "w2");
  first.wait_for("revoking", kOne, 2);
  EXPECT_TRUE(worker.may_act(kOne, epoch)) << "what is under way may be finished";
  EXPECT_TRUE(second.told(kOne).empty()) << "it waits for the one who has not stopped";
  worker.stopped(kOne, epoch);
  EXPECT_FALSE(worker.may_act(kOne, epoch)) << "at once";
  EXPECT_EQ(second.wait_for("acquired", kOne, 1), Epoch{epoch.value + 1});
  EXPECT_TRUE(second.worker().may_act(kOne, Epoch{epoch.value + 1}));
  EXPECT_EQ(first.told(kOne),
            (Lines{{"acquired", kOne, epoch, true}, {"revoking", kOne, epoch, true}}));
}

// A worker that does not stop in time is told that the partition is lost, and may not act by then.
TEST_F(Library, LostComesAfterRevokingAndNothingMayBeDone) {
  Member first(store(), "w1");
  const Epoch epoch = first.wait_for("acquired", kOne, 1);
  Member second(store(), "w2");
  first.wait_for("lost", kOne, 3);
  EXPECT_EQ(first.told(kOne), (Lines{{"acquired", kOne, epoch, true},
                                     {"revoking", kOne, epoch, true},
                                     {"lost", kOne, epoch, false}}));
}

// The lease is not renewed: may_act() does not wait for a thread to notice.
TEST_F(Library, NothingMayBeDonePastTheDeadline) {
  Member first(store(), "w1");
  const Epoch epoch = first.wait_for("acquired", kOne, 1);
  server_->kill();
  EXPECT_TRUE(eventually([&] { return !first.worker().may_act(kOne, epoch); }, seconds{3}));
  first.wait_for("lost", kOne, 2);
  EXPECT_EQ(first.told(kOne),
            (Lines{{"acquired", kOne, epoch, true}, {"lost", kOne, epoch, false}}));
}

// A stopped() that comes twice, or late, is about former work, not about the present one.
TEST_F(Library, StoppedOfAFormerEpochChangesNothing) {
  Member first(store(), "w1");
  const Epoch epoch = first.wait_for("acquired", kOne, 1);
  {
    Member second(store(), "w2");
    first.wait_for("revoking", kOne, 2);
    first.worker().stopped(kOne, epoch);
    second.wait_for("acquired", kOne, 1);
    second.worker().begin_close();
    second.worker().stopped(kOne, second.wait_for("revoking", kOne, 2));
    EXPECT_TRUE(second.worker().close().has_value());
  }
  const Epoch again = first.wait_for("acquired", kOne, 3);
  EXPECT_EQ(again, Epoch{epoch.value + 2});

  first.worker().stopped(kOne, epoch);
  // Work that ends by itself begins again; by then the call above was processed.
  first.worker().stopped(kZero, first.told(kZero).back().epoch);
  first.wait_for("acquired", kZero, 2);

  EXPECT_TRUE(first.worker().may_act(kOne, again));
  EXPECT_EQ(first.told(kOne).size(), 3U) << "nobody took it up a second time";
}

// A callback runs on the thread that would have to end.
TEST_F(Library, ACallbackCannotWaitForTheEnd) {
  std::promise<std::pair<Status, bool>> answered;
  bool asked = false;
  Member first(store(), "w1", [&](client::Worker& worker) {
    if (std::exchange(asked, true)) return;
    const Status left = worker.close();
    answered.set_value({left, worker.wait(seconds{60}).has_value()});
  });
  auto answer = answered.get_future();
  ASSERT_EQ(answer.wait_for(seconds{10}), std::future_status::ready);
  const auto [left, ended] = answer.get();
  ASSERT_FALSE(left.has_value());
  EXPECT_EQ(left.error().code, Errc::failed_precondition);
  EXPECT_NE(left.error().text.find("begin_close"), std::string::npos) << left.error().text;
  EXPECT_FALSE(ended);
}

}  // namespace
}  // namespace baton::worker_tests
