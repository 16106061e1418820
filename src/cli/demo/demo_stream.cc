#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <baton/broker.h>
#include <baton/stream_consumer.h>
#include <baton/stream_producer.h>
#include <fmt/format.h>

#include "cli/demo/demo_stage.h"

/// The demo's act on streams: three consumers, three partitions, and seats that move.
namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kStreamPatience{10'000};
constexpr milliseconds kStreamPoll{1};
constexpr std::uint32_t kPartitions = 3;

/// What all consumers together have read: how often each record was read.
class Tally {
 public:
  void add(PartitionNumber partition, Offset offset) {
    const std::scoped_lock lock(mutex_);
    ++times_[{partition, offset}];
  }
  [[nodiscard]] std::size_t different() const {
    const std::scoped_lock lock(mutex_);
    return times_.size();
  }
  [[nodiscard]] std::size_t repeated() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count_if(times_, [](const auto& entry) { return entry.second > 1; }));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<PartitionNumber, Offset>, int> times_;
};

/// A consumer in this process.
class Member {
 public:
  static Result<std::unique_ptr<Member>> join(const Stage& stage, std::string owner, Tally& tally) {
    auto member = std::make_unique<Member>();
    client::StreamConsumerOptions options;
    options.group = "billing";
    options.single_active = true;
    options.from = client::StartFrom::first();
    options.owner = std::move(owner);
    options.on_active = [self = member.get()](const client::StreamPosition&) { ++self->seats_; };
    options.on_step_down = [self = member.get()](PartitionNumber) { --self->seats_; };
    const auto count = [&tally](client::RecordBatch& batch) {
      for (const client::Record& record : batch.records) tally.add(batch.partition, record.offset);
    };
    BATON_TRY(member->consumer_, stage.client.stream("orders").consumer(options, count));
    return member;
  }
  [[nodiscard]] int seats() const { return seats_; }
  Status leave() { return consumer_.has_value() ? consumer_->close(kStreamPatience) : Status{}; }

 private:
  std::atomic<int> seats_ = 0;
  std::optional<client::StreamConsumer> consumer_;
};

/// A consumer in a process of its own; it prints what it has read.
class Stranger {
 public:
  Stranger(const Stage& stage, Tally& tally) : tally_(tally) {
    started_ = process_
                   .start({.arguments = {"stream", "subscribe", "orders", "--group", "billing",
                                         "--single-active", "--from", "first", "--store-every", "1",
                                         "--owner", "third", "--json", "--address",
                                         stage.broker.address()},
                           .log_file = stage.folder.path() + "/subscriber.log"})
                   .has_value();
    if (started_) thread_ = std::thread([this] { read(); });
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { kill(); }

  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  /// Sends SIGKILL. What it had printed by then is counted.
  void kill() {
    if (!thread_.joinable()) return;
    static_cast<void>(::kill(process_.pid(), SIGKILL));
    thread_.join();
    process_.kill();
  }

 private:
  void read() {
    while (const auto line = process_.read_line(kStreamPatience)) {
      const Json event = Json::parse(*line, nullptr, false);
      if (event.is_object() && event.value("event", "") == "record") {
        tally_.add(PartitionNumber{event.at("partition").get<std::uint32_t>()},
                   Offset{event.at("offset").get<std::int64_t>()});
      }
    }
  }

  Tally& tally_;
  ChildProcess process_;
  bool started_ = false;
  std::thread thread_;
};

/// Appends at a steady pace until it is destroyed.
class Shop {
 public:
  explicit Shop(client::StreamProducer producer)
      : producer_(std::move(producer)), thread_([this] { run(); }) {}
  Shop(const Shop&) = delete;
  Shop& operator=(const Shop&) = delete;
  ~Shop() { static_cast<void>(close()); }

  Status close() {
    over_ = true;
    if (!thread_.joinable()) return {};
    thread_.join();
    return producer_.close(kStreamPatience);
  }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  void run() {
    while (!over_) {
      for (int i = 0; i < 5; ++i) {
        client::NewRecord record;
        record.key = fmt::format("customer {}", sent_ % 100);
        record.value = fmt::format("order {}", sent_.load());
        producer_.send(std::move(record), nullptr);
        ++sent_;
      }
      std::this_thread::sleep_for(kStreamPoll);
    }
  }

  client::StreamProducer producer_;
  std::atomic<std::size_t> sent_ = 0;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

/// How long it took until `holds`, in milliseconds; nullopt if it took too long.
std::optional<double> time_until(const std::function<bool()>& holds) {
  const auto began = Clock::now();
  while (!holds()) {
    if (Clock::now() - began > kStreamPatience) return std::nullopt;
    std::this_thread::sleep_for(kStreamPoll);
  }
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

/// Reports and checks how long a seat took to move.
void report_move(Stage& stage, std::string_view what, std::string_view name,
                 std::optional<double> took) {
  stage.narrator.check(took.has_value(), fmt::format("{}: the seat moved", what));
  if (!took.has_value()) return;
  stage.narrator.say(fmt::format("{}: its seat had moved {:.1f} ms later", what, *took));
  stage.narrator.number(name, *took);
  stage.narrator.check(*took < kAtOnceMs, "nobody waited for a time-out");
}

}  // namespace

Status act_stream_seats(Stage& stage) {
  const client::Stream orders = stage.client.stream("orders");
  BATON_TRY_STATUS(orders.create(kPartitions));
  BATON_TRY(auto producer, orders.producer());
  Shop shop(std::move(producer));
  Tally tally;
  BATON_TRY(const auto first, Member::join(stage, "first", tally));
  BATON_TRY(const auto second, Member::join(stage, "second", tally));
  Stranger third(stage, tally);
  if (!stage.narrator.check(third.started(), "a third consumer starts, in a process of its own"))
    return {};
  const auto spread = time_until([&] { return first->seats() == 1 && second->seats() == 1; });
  stage.narrator.check(spread.has_value(),
                       "three partitions, three consumers of a group: each has one seat");

  // Two consumers are left: the first has partitions 0 and 2, the third process partition 1.
  const auto leaves = Clock::now();
  BATON_TRY_STATUS(second->leave());
  auto took = time_until([&] { return first->seats() == 2; });
  if (took) *took = std::chrono::duration<double, std::milli>(Clock::now() - leaves).count();
  report_move(stage, "the second leaves", "seat_leave_ms", took);
  const std::size_t repeated = tally.repeated();
  stage.narrator.check(repeated == 0, "nothing was read twice after a hand-over");

  std::this_thread::sleep_for(milliseconds{200});
  stage.narrator.say(fmt::format("process {} holds the other seat", third.pid()));
  third.kill();
  report_move(stage, "kill -9 of the third", "seat_kill_ms",
              time_until([&] { return first->seats() == 3; }));
  BATON_TRY_STATUS(shop.close());
  const auto all = time_until([&] { return tally.different() == shop.sent(); });
  stage.narrator.check(all.has_value(),
                       fmt::format("all {} records were read, none was missed", shop.sent()));
  stage.narrator.say(
      fmt::format("{} of them twice: the killed one had read them and not yet stored its offset",
                  tally.repeated()));
  return first->leave();
}

}  // namespace baton::cli
