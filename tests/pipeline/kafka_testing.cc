#include "pipeline/kafka_testing.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_producer.h"

namespace baton::pipeline::kafka_test {
namespace {

constexpr Duration kAsk = seconds(10);

}  // namespace

EngineOptions quick_engine() {
  EngineOptions options;
  options.workers = 2;
  options.lanes = 2;
  options.window_records = 500;
  options.commit_interval = milliseconds(20);
  options.drain = seconds(10);
  options.revoke_wait = seconds(5);
  options.lane.batch_records = 50;
  options.lane.linger = milliseconds(1);
  options.lane.retries = 2;
  options.lane.backoff = {.first = milliseconds(1), .most = milliseconds(5)};
  options.lane.pipeline = "p";
  options.lane.source = "s";
  options.breaker.probe = {.first = milliseconds(10), .most = milliseconds(50)};
  options.breaker.slow_start = milliseconds(1);
  return options;
}

std::function<void(bool, const std::string&)> KafkaRun::logger() {
  return [this](bool /*warning*/, const std::string& text) {
    const std::scoped_lock lock(mutex_);
    log_.push_back(text);
  };
}

KafkaRun::KafkaRun(KafkaSourceOptions source, EngineOptions engine, Sink& sink)
    : source_([&] {
        source.log = logger();
        return std::move(source);
      }()) {
  engine.log = logger();
  engine_ = std::make_unique<Engine>(std::move(engine), source_, sink, letters_);
  thread_ = std::jthread([this](const std::stop_token& stop) {
    ending_ = engine_->run(stop);
    ended_ = true;
  });
}

KafkaRun::~KafkaRun() {
  if (thread_.joinable()) (void)stop();
}

Result<Ending> KafkaRun::stop() {
  thread_.request_stop();
  return wait();
}

Result<Ending> KafkaRun::wait() {
  thread_.join();
  return ending_;
}

std::map<std::uint32_t, std::uint64_t> KafkaRun::epochs() {
  std::map<std::uint32_t, std::uint64_t> result;
  for (const auto& one : engine_->status().partitions) result[one.partition] = one.epoch;
  return result;
}

bool KafkaRun::has_partitions(std::size_t count) {
  return e2e::eventually([&] { return epochs().size() == count; });
}

std::vector<std::string> KafkaRun::log() {
  const std::scoped_lock lock(mutex_);
  return log_;
}

std::size_t KafkaRun::count_in_log(const std::string& part) {
  const auto lines = log();
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [&](const auto& line) { return line.find(part) != std::string::npos; }));
}

KafkaView::KafkaView(const std::string& brokers, const std::string& topic, const std::string& group)
    : topic_(topic) {
  KafkaSourceOptions options;
  options.brokers = brokers;
  options.topic = topic;
  options.group = group;
  handle_ = make_onlooker(options).value();
}

std::int64_t KafkaView::committed(std::uint32_t partition) const {
  return committed_of(*handle_, topic_, {partition}, kAsk).value().at(partition).value_or(-1);
}

KafkaRange KafkaView::range(std::uint32_t partition) const {
  return range_of(*handle_, topic_, partition, kAsk).value();
}

std::uint32_t KafkaView::partitions() const {
  return count_partitions(*handle_, topic_, kAsk).value();
}

void KafkaView::commit(std::uint32_t partition, std::int64_t next) const {
  const KafkaPartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(),
                                    static_cast<std::int32_t>(partition))
      ->offset = next;
  ASSERT_EQ(rd_kafka_commit(handle_.get(), list.get(), 0), RD_KAFKA_RESP_ERR_NO_ERROR);
}

std::int64_t KafkaView::records() const {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < partitions(); ++i) sum += range(i).next;
  return sum;
}

bool KafkaView::all_committed() const {
  for (std::uint32_t i = 0; i < partitions(); ++i) {
    if (committed(i) != range(i).next) return false;
  }
  return true;
}

std::vector<Record> KafkaView::read(std::size_t count) const {
  const KafkaPartitionList list(rd_kafka_topic_partition_list_new(1));
  for (std::uint32_t i = 0; i < partitions(); ++i) {
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), static_cast<std::int32_t>(i))
        ->offset = 0;
  }
  (void)rd_kafka_poll_set_consumer(handle_.get());
  (void)rd_kafka_assign(handle_.get(), list.get());
  std::vector<Record> result;
  (void)e2e::eventually(
      [&] {
        const KafkaMessage message(rd_kafka_consumer_poll(handle_.get(), 100));
        if (message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
          result.push_back(to_record(*message));
        }
        return result.size() >= count;
      },
      seconds(10));
  (void)rd_kafka_assign(handle_.get(), nullptr);
  return result;
}

void produce(const std::string& brokers, const std::string& topic, int count,
             std::size_t value_bytes) {
  auto producer = KafkaProducer::open({.brokers = brokers, .topic = topic});
  ASSERT_TRUE(producer.has_value()) << to_string(producer.error());
  for (int i = 0; i < count; ++i) {
    const Status sent = (*producer)->send(fmt::format("key{}", i), std::string(value_bytes, 'v'));
    ASSERT_TRUE(sent.has_value()) << to_string(sent.error());
  }
  const Status flushed = (*producer)->flush(seconds(60));
  ASSERT_TRUE(flushed.has_value()) << to_string(flushed.error());
}

}  // namespace baton::pipeline::kafka_test
