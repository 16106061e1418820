#include "pipeline/kafka/kafka_producer.h"

#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

#include "pipeline/engine/gate.h"
#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

constexpr Duration kPoll = std::chrono::milliseconds(50);
constexpr Duration kQueueFull = std::chrono::milliseconds(5);
constexpr Duration kGoodbye = std::chrono::seconds(2);

}  // namespace

/// The delivery reports of some records. Lives until the last report has arrived, even if its
/// waiter is gone.
class KafkaProducer::Receipts {
 public:
  void expect() {
    const std::scoped_lock lock(mutex_);
    ++open_;
  }
  void came(rd_kafka_resp_err_t error) {
    {
      const std::scoped_lock lock(mutex_);
      --open_;
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR && failed_++ == 0) first_ = error;
    }
    changed_.notify_all();
  }
  /// The record was not even queued.
  void withdraw() {
    const std::scoped_lock lock(mutex_);
    --open_;
  }
  /// Waits for all reports, and starts to count failures from zero.
  Status wait(Duration time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return open_ == 0; });
    const std::size_t failed = std::exchange(failed_, 0);
    if (failed > 0) {
      return to_error(first_, fmt::format("{} records were not delivered, the first one", failed));
    }
    if (open_ > 0) {
      return Error{Errc::deadline_exceeded, fmt::format("{} records are not confirmed yet", open_)};
    }
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t open_ = 0;
  std::size_t failed_ = 0;
  rd_kafka_resp_err_t first_ = RD_KAFKA_RESP_ERR_NO_ERROR;
};

KafkaProducer::KafkaProducer(KafkaProducerOptions options)
    : options_(std::move(options)), receipts_(std::make_shared<Receipts>()) {}

Result<std::unique_ptr<KafkaProducer>> KafkaProducer::open(KafkaProducerOptions options) {
  std::unique_ptr<KafkaProducer> producer(new KafkaProducer(std::move(options)));
  BATON_TRY_STATUS(producer->connect());
  return producer;
}

Status KafkaProducer::connect() {
  KafkaConfParts parts;
  parts.defaults = {{"client.id", "baton-pipeline"},
                    {"linger.ms", "5"},
                    // The brokers' limit applies instead.
                    {"message.max.bytes", "67108864"}};
  parts.wanted = options_.properties;
  parts.security = options_.security;
  parts.fixed = {brokers_property(options_.brokers),
                 {"enable.idempotence", "true"},
                 {"acks", "all"},
                 {"message.timeout.ms", to_milliseconds(options_.delivery_timeout)},
                 {"queue.buffering.max.messages", std::to_string(options_.queued_records_max)},
                 {"queue.buffering.max.kbytes", std::to_string(options_.queued_kilobytes_max)}};
  BATON_TRY(KafkaConf conf, make_conf(parts));
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  note_errors(*conf);
  BATON_TRY(handle_, make_handle(RD_KAFKA_PRODUCER, std::move(conf)));
  // A producer's metadata request may create the topic, which takes a moment.
  const auto partitions = find_topic(
      *handle_,
      {.brokers = options_.brokers, .topic = options_.topic, .security = options_.security},
      kAnswerTime);
  if (!partitions.has_value() && partitions.error().code != Errc::not_found) {
    return partitions.error();
  }
  poller_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)rd_kafka_poll(handle_.get(), milliseconds_of(kPoll));
  });
  return {};
}

/// Records in flight get a moment, and then fail: each record gets its report.
KafkaProducer::~KafkaProducer() {
  if (handle_ == nullptr) return;
  if (poller_.joinable()) {
    poller_.request_stop();
    poller_.join();
  }
  if (rd_kafka_flush(handle_.get(), milliseconds_of(kGoodbye)) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    return;
  }
  (void)rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  (void)rd_kafka_flush(handle_.get(), milliseconds_of(kGoodbye));
}

bool KafkaProducer::is_broken() const {
  return rd_kafka_fatal_error(handle_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

void KafkaProducer::on_delivery(rd_kafka_t* /*handle*/, const rd_kafka_message_t* message,
                                void* /*opaque*/) {
  const std::unique_ptr<std::shared_ptr<Receipts>> receipts(
      static_cast<std::shared_ptr<Receipts>*>(message->_private));
  (*receipts)->came(message->err);
}

rd_kafka_resp_err_t KafkaProducer::try_produce(const KafkaOutgoing& record,
                                               const std::shared_ptr<Receipts>& receipts) {
  KafkaHeaders headers(rd_kafka_headers_new(record.headers.size()));
  for (const auto& [name, value] : record.headers) {
    (void)rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()),
                              value.data(), static_cast<ssize_t>(value.size()));
  }
  auto opaque = std::make_unique<std::shared_ptr<Receipts>>(receipts);
  // An empty key would put all records without a key into one partition.
  const char* key = record.key.empty() ? nullptr : record.key.data();
  // An empty value is not null, which would delete the key.
  const char* value = record.value.data() == nullptr ? "" : record.value.data();
  receipts->expect();
  // librdkafka copies, but its interface is C's.
  // NOLINTBEGIN(cppcoreguidelines-pro-type-const-cast)
  const rd_kafka_resp_err_t error = rd_kafka_producev(
      handle_.get(), RD_KAFKA_V_TOPIC(options_.topic.c_str()),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_KEY(const_cast<char*>(key), record.key.size()),
      RD_KAFKA_V_VALUE(const_cast<char*>(value), record.value.size()),
      RD_KAFKA_V_HEADERS(headers.get()), RD_KAFKA_V_OPAQUE(opaque.get()), RD_KAFKA_V_END);
  // NOLINTEND(cppcoreguidelines-pro-type-const-cast)
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    receipts->withdraw();
    return error;
  }
  // The message owns the headers: see on_delivery().
  [[maybe_unused]] const auto* its_headers = headers.release();
  [[maybe_unused]] const auto* its_receipts = opaque.release();
  return error;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks)
}

Status KafkaProducer::produce(const KafkaOutgoing& record,
                              const std::shared_ptr<Receipts>& receipts, Instant end) {
  while (true) {
    const rd_kafka_resp_err_t error = try_produce(record, receipts);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || boot_time() >= end) {
      return to_error(error, fmt::format("a record for topic '{}'", options_.topic));
    }
    std::this_thread::sleep_for(kQueueFull);
  }
}

Status KafkaProducer::send(std::string_view key, std::string_view value,
                           std::span<const std::pair<std::string, std::string>> headers) {
  // By then the queued records are delivered or have failed.
  const Instant end = boot_time() + (2 * options_.delivery_timeout);
  return produce({.key = key, .value = value, .headers = headers}, receipts_, end);
}

Status KafkaProducer::flush(Duration time) { return receipts_->wait(time); }

Status KafkaProducer::send_all(std::span<const KafkaOutgoing> records, Duration time) {
  const Instant end = boot_time() + time;
  const auto receipts = std::make_shared<Receipts>();
  for (const KafkaOutgoing& record : records) {
    BATON_TRY_STATUS(produce(record, receipts, end));
  }
  return receipts->wait(end - boot_time());
}

}  // namespace baton::pipeline
