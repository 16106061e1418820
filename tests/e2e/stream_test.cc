// Streams on a real broker: crashes under producers, seats that move, bad input.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <baton/broker.h>
#include <baton/stream_consumer.h>
#include <baton/stream_producer.h>
#include <baton/v1/streams.grpc.pb.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

using client::Broker;
using client::StreamConsumer;
using client::StreamProducer;

class StreamTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  [[nodiscard]] Broker client() const {
    auto made = Broker::open(broker_.connection());
    EXPECT_TRUE(made.has_value());
    return *std::move(made);
  }
  void create(std::uint32_t partitions) const {
    const auto made = client().stream("orders").create(partitions);
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
  }
  [[nodiscard]] std::unique_ptr<StreamProducer> producer(const std::string& name = "") const {
    client::StreamProducerOptions options;
    options.producer = name;
    auto made = client().stream("orders").producer(options);
    EXPECT_TRUE(made.has_value()) << to_string(made.error());
    return std::make_unique<StreamProducer>(*std::move(made));
  }
  /// All records of a partition.
  [[nodiscard]] std::vector<client::Record> records(std::uint32_t partition) const {
    std::vector<client::Record> all;
    auto reader = client().stream("orders").read({.partition = PartitionNumber{partition}});
    while (true) {
      auto read = reader.next();
      EXPECT_TRUE(read.has_value()) << to_string(read.error());
      if (!read.has_value() || !read->has_value()) return all;
      for (client::Record& record : **read) all.push_back(std::move(record));
    }
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

/// Sends numbered records with a few keys until told to stop; remembers which were confirmed.
class Sender {
 public:
  Sender(std::unique_ptr<StreamProducer> producer, std::string name)
      : producer_(std::move(producer)), name_(std::move(name)) {
    thread_ = std::thread([this] { run(); });
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { finish(); }

  void finish() {
    stop_ = true;
    if (!thread_.joinable()) return;
    thread_.join();
    const auto closed = producer_->close(seconds{60});
    EXPECT_TRUE(closed.has_value()) << to_string(closed.error());
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t confirmed() const { return confirmed_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void run() {
    while (!stop_) {
      client::NewRecord record;
      record.key = fmt::format("{} {}", name_, sent_ % 7);
      record.value = std::to_string(sent_);
      ++sent_;
      producer_->send(std::move(record), [this](const client::AppendResult& result) {
        EXPECT_TRUE(result.ok()) << to_string(*result.error);
        if (result.ok()) ++confirmed_;
      });
      if (sent_ % 200 == 0) std::this_thread::sleep_for(milliseconds{1});
    }
  }

  std::unique_ptr<StreamProducer> producer_;
  std::string name_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> confirmed_{0};
  std::thread thread_;
};

// Promise: what was confirmed is there, in order, once, however often the broker is killed.
TEST_F(StreamTest, KilledUnderFourProducersNothingIsLostDoubledOrOutOfOrder) {
  create(3);
  std::vector<std::unique_ptr<Sender>> senders;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("sender-{}", i);
    senders.push_back(std::make_unique<Sender>(producer(name), name));
  }
  std::mt19937 random(20'260'731);
  const int kills = is_long_run() ? 40 : 6;
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(milliseconds{100 + random() % 500});
    broker_.kill();
    ASSERT_TRUE(broker_.start()) << broker_.log();
  }
  std::uint64_t sent = 0;
  for (const auto& sender : senders) {
    sender->finish();
    EXPECT_EQ(sender->confirmed(), sender->sent()) << sender->name();
    sent += sender->sent();
  }
  std::map<std::string, std::vector<std::uint64_t>> by_key;
  std::uint64_t found = 0;
  for (std::uint32_t partition = 0; partition < 3; ++partition) {
    std::int64_t offset = 0;
    for (const client::Record& record : records(partition)) {
      ASSERT_EQ(record.offset.value, offset++) << "a gap in partition " << partition;
      by_key[*record.key].push_back(std::stoull(*record.value));
      ++found;
    }
  }
  EXPECT_EQ(found, sent);
  for (const auto& [key, numbers] : by_key) {
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << key;
    EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end()) << key << " has one twice";
  }
  fmt::print("{} kills, {} records, all there\n", kills, found);
}

/// A single-active consumer that records what it handled, and when.
class Member {
 public:
  struct Seen {
    std::uint64_t epoch;
    std::int64_t offset;
  };

  Member(const BrokerProcess& broker, const std::string& owner) : owner_(owner) {
    client::StreamConsumerOptions options;
    options.group = "billing";
    options.single_active = true;
    options.from = client::StartFrom::first();
    options.owner = owner;
    options.concurrency = 3;
    options.on_active = [this](const client::StreamPosition& position) {
      const std::scoped_lock lock(mutex_);
      active_.insert(position.partition.value);
      updates_.push_back(fmt::format("up {}", position.partition.value));
    };
    options.on_step_down = [this](PartitionNumber partition) {
      const std::scoped_lock lock(mutex_);
      active_.erase(partition.value);
      updates_.push_back(fmt::format("down {}", partition.value));
    };
    const auto orders = client::Broker::open(broker.connection())->stream("orders");
    auto made = orders.consumer(options, [this](client::RecordBatch& batch) {
      const std::scoped_lock lock(mutex_);
      for (const client::Record& record : batch.records) {
        seen_[batch.partition.value].push_back({batch.epoch.value, record.offset.value});
      }
    });
    EXPECT_TRUE(made.has_value()) << to_string(made.error());
    consumer_ = *std::move(made);
  }

  void leave() {
    const auto stopped = consumer_->close(seconds{20});
    EXPECT_TRUE(stopped.has_value()) << owner_ << ": " << to_string(stopped.error());
  }
  std::set<std::uint32_t> active() {
    const std::scoped_lock lock(mutex_);
    return active_;
  }
  std::map<std::uint32_t, std::vector<Seen>> seen() {
    const std::scoped_lock lock(mutex_);
    return seen_;
  }
  std::vector<std::string> updates() {
    const std::scoped_lock lock(mutex_);
    return updates_;
  }

 private:
  std::string owner_;
  std::mutex mutex_;
  std::set<std::uint32_t> active_;
  std::map<std::uint32_t, std::vector<Seen>> seen_;
  std::vector<std::string> updates_;
  std::optional<StreamConsumer> consumer_;
};

using Seats = std::vector<std::set<std::uint32_t>>;

// Scenarios 53, 54 and 56: seats spread 3/0/0, 2/1/0, 1/1/1 by the modulo rule, and return.
TEST_F(StreamTest, Scenario56_SeatsSpreadOverConsumersAndComeBack) {
  create(3);
  Member first(broker_, "first");
  ASSERT_TRUE(eventually([&] { return first.active() == std::set<std::uint32_t>{0, 1, 2}; }));
  auto second = std::make_unique<Member>(broker_, "second");
  // 0 mod 2 = 0, 1 mod 2 = 1, 2 mod 2 = 0.
  ASSERT_TRUE(
      eventually([&] { return Seats{first.active(), second->active()} == Seats{{0, 2}, {1}}; }));
  auto third = std::make_unique<Member>(broker_, "third");
  ASSERT_TRUE(eventually([&] {
    return Seats{first.active(), second->active(), third->active()} == Seats{{0}, {1}, {2}};
  }));
  third->leave();
  ASSERT_TRUE(
      eventually([&] { return Seats{first.active(), second->active()} == Seats{{0, 2}, {1}}; }));
  second->leave();
  ASSERT_TRUE(eventually([&] { return first.active() == std::set<std::uint32_t>{0, 1, 2}; }));
  for (std::uint32_t partition = 0; partition < 3; ++partition) {
    std::string last = fmt::format("down {}", partition);
    for (const std::string& update : first.updates()) {
      if (!update.ends_with(fmt::format(" {}", partition))) continue;
      EXPECT_NE(update, last) << "updates of partition " << partition << " do not alternate";
      last = update;
    }
  }
  const auto metrics = broker_.http_get("/metrics");
  ASSERT_TRUE(metrics.has_value());
  EXPECT_NE(metrics->find("baton_groups_without_active{shard=\"0\"} 0"), std::string::npos);
}

// Scenarios 55 and 59: consumers come and go while records are appended; every record is handled by
// exactly one of them, in order, under epochs that only grow.
TEST_F(StreamTest, Scenario59_HandOversUnderLoadLoseNothingAndRepeatNothing) {
  create(3);
  auto sender = std::make_unique<Sender>(producer(), "load");
  std::vector<std::unique_ptr<Member>> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(std::make_unique<Member>(broker_, fmt::format("stays-{}", i)));
    std::this_thread::sleep_for(milliseconds{200});
  }
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::make_unique<Member>(broker_, fmt::format("guest-{}", i)));
    std::this_thread::sleep_for(milliseconds{300});
    all.back()->leave();
  }
  sender->finish();
  const std::uint64_t sent = sender->sent();
  std::map<std::uint32_t, std::map<std::int64_t, int>> handled;
  ASSERT_TRUE(eventually(
      [&] {
        handled.clear();
        std::uint64_t count = 0;
        for (const auto& member : all) {
          for (const auto& [partition, seen] : member->seen()) {
            for (const Member::Seen& record : seen) ++handled[partition][record.offset];
            count += seen.size();
          }
        }
        return count >= sent;
      },
      seconds{30}));
  for (const auto& [partition, offsets] : handled) {
    std::int64_t next = 0;
    for (const auto& [offset, times] : offsets) {
      ASSERT_EQ(offset, next++) << "partition " << partition << " misses a record";
      ASSERT_EQ(times, 1) << "record " << offset << " of partition " << partition;
    }
  }
  for (const auto& member : all) {
    for (const auto& [partition, seen] : member->seen()) {
      EXPECT_TRUE(std::ranges::is_sorted(seen, {}, &Member::Seen::epoch));
    }
  }
  fmt::print("{} records, each handled once\n", sent);
}

// Promise 4: a consumer that is killed costs milliseconds.
TEST_F(StreamTest, Scenario57_AKilledConsumersSeatMovesInMilliseconds) {
  create(1);
  ChildProcess victim({.command = {binary(), "stream", "subscribe", "orders", "--group", "billing",
                                   "--single-active", "--json", "--address", broker_.address()}});
  const auto holders = [&] {
    const auto group = client().stream("orders").group("billing").describe();
    return group.has_value() && group->size() == 1 ? group->front().members.size() : 0;
  };
  ASSERT_TRUE(eventually([&] { return holders() == 1; }));
  Member heir(broker_, "heir");
  ASSERT_TRUE(eventually([&] { return holders() == 2; }));
  EXPECT_TRUE(heir.active().empty());
  const auto before = std::chrono::steady_clock::now();
  victim.kill();
  ASSERT_TRUE(eventually([&] { return !heir.active().empty(); }, seconds{10}));
  const auto took = std::chrono::steady_clock::now() - before;
  fmt::print("the seat moved in {} ms\n", std::chrono::duration_cast<milliseconds>(took).count());
  EXPECT_LT(took, seconds{2});
}

// Offsets and generations are in the journal: they survive, and grow.
TEST_F(StreamTest, ARestartKeepsOffsetsAndGenerationsAndSeatsFillAtOnce) {
  create(1);
  auto streams = client();
  const std::vector<client::NewRecord> ten(10, {.value = "x"});
  ASSERT_TRUE(streams.stream("orders").append(ten).has_value());
  std::uint64_t generation = 0;
  {
    Member member(broker_, "before");
    ASSERT_TRUE(eventually([&] { return member.seen()[0].size() == 10; }));
    member.leave();
    generation = streams.stream("orders").group("billing").offset(PartitionNumber{0})->generation;
    EXPECT_EQ(streams.stream("orders").group("billing").offset(PartitionNumber{0})->offset,
              Offset{10});
  }
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  auto again = client();
  EXPECT_EQ(again.stream("orders").group("billing").offset(PartitionNumber{0})->offset, Offset{10});
  ASSERT_TRUE(again.stream("orders").append(ten).has_value());
  Member member(broker_, "after");
  ASSERT_TRUE(eventually([&] { return member.seen()[0].size() == 10; }));
  EXPECT_EQ(member.seen()[0].front().offset, 10);
  EXPECT_GT(member.seen()[0].front().epoch, generation);
}

// As an operator resets a group: previewed first, refused while it has consumers, kept on the disk.
TEST_F(StreamTest, AGroupIsMovedWhenNobodyReadsAndStaysWhereItWasPut) {
  create(2);
  auto streams = client();
  for (const std::uint32_t partition : {0U, 1U}) {
    const std::vector<client::NewRecord> five(
        5, {.value = "x", .partition = PartitionNumber{partition}});
    ASSERT_TRUE(streams.stream("orders").append(five).has_value());
  }
  ASSERT_TRUE(streams.stream("orders")
                  .group("billing")
                  .store_offset(PartitionNumber{0}, Offset{4})
                  .has_value());
  const auto at = [&](std::uint32_t partition) {
    return client().stream("orders").group("billing").offset(PartitionNumber{partition})->offset;
  };
  const auto set = [&](std::vector<std::string> more) {
    std::vector<std::string> command{"group", "offset", "set", "orders", "billing"};
    command.insert(command.end(), more.begin(), more.end());
    return broker_.cli(command);
  };

  const auto seen = set({"--to", "first", "--dry-run"});
  EXPECT_EQ(seen.exit_code, 0) << seen.err;
  EXPECT_TRUE(
      seen.out.starts_with("orders / billing  dry run: nothing was changed\n"
                           "PARTITION  BEFORE  AFTER\n"))
      << seen.out;
  EXPECT_NE(seen.out.find("none"), std::string::npos) << seen.out;
  EXPECT_EQ(at(0), Offset{4});
  const auto moved = nlohmann::json::parse(set({"--to", "next", "--partition", "1", "--json"}).out);
  EXPECT_EQ(moved.at("partitions").at(0).at("after"), 5);
  EXPECT_FALSE(moved.at("partitions").at(0).contains("before"));
  EXPECT_EQ(set({"--to", "2"}).exit_code, 0);
  EXPECT_EQ(set({"--to", "1970-01-01T00:00:00Z", "--partition", "0"}).exit_code, 0);
  EXPECT_EQ(at(0), Offset{0});
  EXPECT_EQ(at(1), Offset{2});
  // All or none: the second partition has no such offset, and the first stays.
  ASSERT_TRUE(streams.stream("orders").append(
      std::vector<client::NewRecord>{{.value = "x", .partition = PartitionNumber{0}}}));
  const auto far = set({"--to", "6"});
  EXPECT_NE(far.err.find("offset is 6; partition 1 of stream 'orders' has 0 to 5"),
            std::string::npos)
      << far.err;
  EXPECT_EQ(at(0), Offset{0});
  EXPECT_NE(set({"--to", "first", "--partition", "7"}).err.find("it has 0 to 1"),
            std::string::npos);

  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(at(0), Offset{0});
  EXPECT_EQ(at(1), Offset{2});
  Member member(broker_, "reader");
  ASSERT_TRUE(eventually([&] { return member.seen()[1].size() == 3; }));
  EXPECT_EQ(member.seen()[1].front().offset, 2);
  const auto refused = set({"--to", "first"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("stop its consumers"), std::string::npos) << refused.err;
}

// Each gets an error that says what is wrong, and the partition stays sound.
TEST_F(StreamTest, BadInputIsRefusedByNameAndLeavesThePartitionSound) {
  create(1);
  const auto stub = v1::StreamService::NewStub(broker_.channel());
  const auto append = [&](const std::string& batch, std::uint32_t partition = 0) {
    v1::AppendRequest request;
    request.set_stream("orders");
    request.add_batches()->set_batch(batch);
    request.mutable_batches(0)->set_partition(partition);
    v1::AppendResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub->Append(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.batches_size() == 1 ? response.batches(0).error() : v1::Error{};
  };
  auto streams = client();
  ASSERT_TRUE(streams.stream("orders").append(std::vector<client::NewRecord>{{.value = "good"}}));
  EXPECT_EQ(append("").name(), "malformed");
  EXPECT_EQ(append(std::string(100, '\0')).name(), "malformed");
  EXPECT_EQ(append(std::string(3000, 'x')).name(), "malformed");
  const auto unknown =
      streams.stream("nothing").append(std::vector<client::NewRecord>{{.value = "x"}});
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->front().error->name(), "stream_not_found");
  const auto far = streams.stream("orders").append(
      std::vector<client::NewRecord>{{.value = "x", .partition = PartitionNumber{9}}});
  ASSERT_TRUE(far.has_value());
  EXPECT_EQ(far->front().error->name(), "partition_not_found");
  const auto future = streams.stream("orders").append(std::vector<client::NewRecord>{
      {.value = "x", .timestamp = client::RecordTime{milliseconds{1} * (1LL << 45)}}});
  ASSERT_TRUE(future.has_value());
  EXPECT_NE(future->front().error->text.find("timestamp"), std::string::npos)
      << future->front().error->text;
  auto beyond = streams.stream("orders").read({.from = client::StartFrom::at(Offset{1'000'000})});
  const auto read = beyond.next();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().name(), "offset_out_of_range");
  const auto ahead =
      streams.stream("orders").group("billing").store_offset(PartitionNumber{0}, Offset{1'000'000});
  ASSERT_FALSE(ahead.has_value());
  EXPECT_EQ(ahead.error().name(), "offset_out_of_range");

  ASSERT_TRUE(
      streams.stream("orders").append(std::vector<client::NewRecord>{{.value = "still good"}}));
  const auto all = records(0);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].value, "good");
  EXPECT_EQ(all[1].value, "still good");
  EXPECT_TRUE(broker_.is_running());
}

// The command line, as its help shows it.
TEST_F(StreamTest, TheCommandLineMakesAppendsReadsAndDeletes) {
  ASSERT_EQ(broker_.cli({"stream", "create", "orders", "--partitions", "3"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"stream", "append", "orders", "--key", "k", "hello"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"stream", "append", "orders", "-"}, "one\ntwo\n").exit_code, 0);
  const auto read = broker_.cli({"stream", "read", "orders", "--json"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  std::set<std::string> values;
  for (std::size_t begin = 0; begin < read.out.size();) {
    const std::size_t end = read.out.find('\n', begin);
    values.insert(nlohmann::json::parse(read.out.substr(begin, end - begin)).at("value"));
    begin = end + 1;
  }
  EXPECT_EQ(values, (std::set<std::string>{"hello", "one", "two"}));
  EXPECT_EQ(broker_.cli({"group", "list"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"stream", "delete", "orders"}).exit_code, 0);
  EXPECT_NE(broker_.cli({"stream", "describe", "orders"}).exit_code, 0);
}

}  // namespace
}  // namespace baton::e2e
