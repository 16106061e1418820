#include "pipeline/kafka/kafka_member.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "pipeline/engine/gate.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka/kafka_lookup.h"

namespace baton::pipeline {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kLookForRoom = std::chrono::milliseconds(2);
constexpr Duration kLookForTopic = std::chrono::seconds(2);
constexpr Duration kLookForBrokers = std::chrono::milliseconds(500);
constexpr Duration kLookAtEnd = std::chrono::seconds(2);
constexpr Duration kCommit = std::chrono::seconds(10);
constexpr Duration kClose = std::chrono::seconds(5);
constexpr int kServedMax = 100;

Result<KafkaConf> conf_of(const KafkaSourceOptions& options) {
  static constexpr std::array<std::string_view, 3> kFroms = {"error", "first", "next"};
  if (std::ranges::find(kFroms, options.from) == kFroms.end()) {
    return Error{Errc::invalid_argument,
                 fmt::format("from: '{}' is none of error, first, next", options.from)};
  }
  const Duration heartbeat =
      std::min<Duration>(options.session_timeout / 3, std::chrono::seconds(3));
  // The polling thread waits for records in flight, in a rebalance and at the end.
  const Duration poll_interval = std::max<Duration>(
      std::chrono::minutes(5), (2 * options.drain) + options.session_timeout + kCommit);
  KafkaConfParts parts;
  parts.defaults = {{"client.id", "baton-pipeline"},
                    {"auto.commit.interval.ms", "1000"},
                    {"heartbeat.interval.ms", to_milliseconds(heartbeat)},
                    {"max.poll.interval.ms", to_milliseconds(poll_interval)},
                    // For each partition, because each has its own queue.
                    {"queued.min.messages", "10000"},
                    {"queued.max.messages.kbytes", "8192"},
                    {"fetch.error.backoff.ms", "200"},
                    {"allow.auto.create.topics", "false"}};
  parts.wanted = options.properties;
  parts.security = options.security;
  parts.fixed = {brokers_property(options.brokers),
                 {"group.id", options.group},
                 {"session.timeout.ms", to_milliseconds(options.session_timeout)},
                 {"enable.auto.commit", "true"},
                 {"enable.auto.offset.store", "false"},
                 // Not cooperative-sticky: it loops and hangs before librdkafka 2.10.
                 {"partition.assignment.strategy", "range,roundrobin"},
                 // The pipeline chooses where to begin instead, and tells the listener.
                 {"auto.offset.reset", "error"}};
  if (!options.instance.empty()) parts.fixed.emplace_back("group.instance.id", options.instance);
  return make_conf(parts);
}

}  // namespace

Result<KafkaHandle> make_onlooker(const KafkaSourceOptions& options) {
  BATON_TRY(KafkaConf conf, conf_of(options));
  note_errors(*conf);
  return make_handle(RD_KAFKA_CONSUMER, std::move(conf));
}

Error session_refused(const KafkaSourceOptions& options,
                      const std::optional<KafkaSessionBounds>& bounds) {
  std::string allowed = "see group.min.session.timeout.ms and group.max.session.timeout.ms there";
  if (bounds.has_value()) {
    allowed = fmt::format("group.min.session.timeout.ms is {}, group.max.session.timeout.ms is {}",
                          format_duration(bounds->least), format_duration(bounds->most));
  }
  return {Errc::invalid_argument,
          fmt::format("source.session_timeout: {} is refused by the brokers "
                      "of Kafka ({})",
                      format_duration(options.session_timeout), allowed)};
}

Result<std::unique_ptr<KafkaMember>> KafkaMember::join(const KafkaSourceOptions& options,
                                                       SourceListener& listener) {
  std::unique_ptr<KafkaMember> member(new KafkaMember(options, listener));
  BATON_TRY_STATUS(member->open());
  member->thread_ = std::jthread([&member = *member] { member.run(); });
  return member;
}

KafkaMember::~KafkaMember() {
  if (thread_.joinable()) (void)leave(Duration::zero());
}

Status KafkaMember::open() {
  BATON_TRY(KafkaConf conf, conf_of(options_));
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(conf.get(), on_rebalance);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  rd_kafka_conf_set_offset_commit_cb(conf.get(), on_commit);
  BATON_TRY(handle_, make_handle(RD_KAFKA_CONSUMER, std::move(conf)));
  (void)rd_kafka_poll_set_consumer(handle_.get());
  const auto partitions = count_partitions(*handle_, options_.topic, kAnswerTime);
  if (!partitions.has_value()) {
    return Error{partitions.error().code,
                 fmt::format("{} ({})", partitions.error().text, options_.brokers)};
  }
  group_queue_.reset(rd_kafka_queue_get_consumer(handle_.get()));
  rd_kafka_queue_cb_event_enable(
      group_queue_.get(), [](rd_kafka_t*, void* bell) { static_cast<Bell*>(bell)->ring(); },
      &bell_);
  seats_ = std::make_unique<KafkaSeats>(KafkaSeats::Context{
      .options = &options_,
      .handle = handle_.get(),
      .group_queue = group_queue_.get(),
      .listener = &listener_,
      .bell = &bell_,
      .report = [this](rd_kafka_resp_err_t code, const std::string& why) { report(code, why); },
      .fail = [this](Error error) { fail(std::move(error)); }});
  const KafkaPartitionList topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options_.topic.c_str(), RD_KAFKA_PARTITION_UA);
  const rd_kafka_resp_err_t error = rd_kafka_subscribe(handle_.get(), topics.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return to_error(error, options_.topic);
  return {};
}

void KafkaMember::log(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

void KafkaMember::log_once(const std::string& text) {
  if (std::exchange(said_, text) != text) log(true, text);
}

void KafkaMember::pause(bool wanted) {
  paused_ = wanted;
  bell_.ring();
}

void KafkaMember::run() {
  while (!stopping_) {
    serve_group();
    look_for_brokers();
    seats_->pause(paused_);
    bool more = false;
    if (!failed_) {
      look_for_topic();
      seats_->settle();
      more = !paused_ && seats_->deliver();
    }
    if (paused_ && boot_time() >= look_at_end_at_) {
      seats_->look_at_end();
      look_at_end_at_ = boot_time() + kLookAtEnd;
    }
    const bool full = !paused_ && !failed_ && !listener_.has_room();
    if (!more && !stopping_) bell_.wait(full ? kLookForRoom : kTick);
  }
  left_ = leave_group();
}

/// Serves rebalances, by on_rebalance().
void KafkaMember::serve_group() {
  for (int i = 0; i < kServedMax; ++i) {
    const KafkaMessage message(rd_kafka_consumer_poll(handle_.get(), 0));
    if (message == nullptr) return;
    // Records of assigned partitions have their own queues: this one is of a partition that was
    // revoked.
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    report(message->err, rd_kafka_message_errstr(message.get()));
  }
}

void KafkaMember::on_rebalance(rd_kafka_t* /*handle*/, rd_kafka_resp_err_t what,
                               rd_kafka_topic_partition_list_t* partitions, void* member) {
  static_cast<KafkaMember*>(member)->rebalance(what, *partitions);
}

void KafkaMember::rebalance(rd_kafka_resp_err_t what,
                            const rd_kafka_topic_partition_list_t& partitions) {
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !stopping_) {
    log(false, fmt::format("the group has assigned {} partitions to this member", partitions.cnt));
    joined_ = joined_ || partitions.cnt > 0;
    set_trouble(std::nullopt);
    seats_->pause(paused_);
    return seats_->assign(partitions);
  }
  const bool lost = rd_kafka_assignment_lost(handle_.get()) != 0;
  if (lost) log(true, "the group has taken our partitions away: nothing of them is committed");
  if (!stopping_) seats_->deliver_last_copies();
  (void)seats_->revoke(lost, options_.session_timeout / 2);
}

void KafkaMember::on_error(rd_kafka_t* /*handle*/, int code, const char* why, void* member) {
  static_cast<KafkaMember*>(member)->report(static_cast<rd_kafka_resp_err_t>(code), why);
}

/// librdkafka does not recover from this error: the member reads and commits nothing any more.
void KafkaMember::fail_for_good(rd_kafka_resp_err_t code, const std::string& why) {
  std::array<char, 512> text{};
  const rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(handle_.get(), text.data(), text.size());
  const bool known = fatal != RD_KAFKA_RESP_ERR_NO_ERROR;
  if (fatal == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID ||
      code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID) {
    return fail(
        {Errc::failed_precondition,
         fmt::format("another pipeline of group {} has joined with the id '{}': each process "
                     "needs an id of its own",
                     options_.group, options_.instance)});
  }
  fail(to_error(known ? fatal : code, known ? text.data() : why));
}

void KafkaMember::on_commit(rd_kafka_t* /*handle*/, rd_kafka_resp_err_t error,
                            rd_kafka_topic_partition_list_t* /*offsets*/, void* member) {
  auto& self = *static_cast<KafkaMember*>(member);
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: self.said_.clear(); return;
    case RD_KAFKA_RESP_ERR__NO_OFFSET:
    // Or a commit by a member that is no longer the owner: refused, as it should be.
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS: return;
    default: self.report(error, "offsets cannot be committed, and will be with the next ones");
  }
}

void KafkaMember::report(rd_kafka_resp_err_t code, const std::string& why) {
  if (code == RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT) {
    return fail(session_refused(options_, std::nullopt));
  }
  if (is_refusal(code) && !(joined_ && code == RD_KAFKA_RESP_ERR__AUTHENTICATION)) {
    return fail(to_error(code, why));
  }
  switch (code) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    // About one broker; an outage of all is reported below.
    case RD_KAFKA_RESP_ERR__TIMED_OUT: return;
    case RD_KAFKA_RESP_ERR__FATAL:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID: return fail_for_good(code, why);
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
      return set_trouble(fmt::format("{} ({})", why, options_.brokers));
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      if (!topic_missing_since_.has_value()) topic_missing_since_ = boot_time();
      break;
    default: break;
  }
  const std::string_view name = rd_kafka_err2str(code);
  log_once(why.find(name) != std::string::npos ? why : fmt::format("{}: {}", why, name));
}

void KafkaMember::fail(Error error) {
  if (std::exchange(failed_, true)) return;
  listener_.failed(std::move(error));
}

void KafkaMember::set_trouble(std::optional<std::string> why) {
  const std::scoped_lock lock(trouble_mutex_);
  trouble_ = std::move(why);
}

std::optional<std::string> KafkaMember::trouble() const {
  const std::scoped_lock lock(trouble_mutex_);
  return trouble_;
}

/// librdkafka tells when the last broker is lost, but not when one is back.
void KafkaMember::look_for_brokers() {
  const Instant now = boot_time();
  if (!trouble().has_value() || now < look_for_brokers_at_) return;
  const auto found = count_partitions(*handle_, options_.topic, kLookForBrokers);
  if (found.has_value() || found.error().code == Errc::not_found) set_trouble(std::nullopt);
  look_for_brokers_at_ = boot_time() + kLookForBrokers;
}

/// Brokers that start may not know their topics yet, so a topic counts as missing only after a
/// while.
void KafkaMember::look_for_topic() {
  const Instant now = boot_time();
  if (!topic_missing_since_.has_value() || now < look_for_topic_at_) return;
  look_for_topic_at_ = now + kLookForTopic;
  const auto found = count_partitions(*handle_, options_.topic, kLookForTopic);
  if (found.has_value()) {
    topic_missing_since_.reset();
    return;
  }
  if (found.error().code != Errc::not_found) return;
  if (now - *topic_missing_since_ >= options_.missing_topic_patience) fail(found.error());
}

Status KafkaMember::leave(Duration time) {
  leave_ns_ = time.count();
  stopping_ = true;
  bell_.ring();
  if (thread_.joinable()) thread_.join();
  return left_;
}

Status KafkaMember::leave_group() {
  const Instant begin = boot_time();
  const KafkaSeats::Marks marks = seats_->revoke(false, Duration(leave_ns_.load()));
  const Instant end = std::max(begin + Duration(leave_ns_.load()), boot_time() + kCommit);
  const Status committed = commit(marks, end);
  close(boot_time() + kClose);
  return committed;
}

/// librdkafka's synchronous commit would wait until there is a coordinator.
Status KafkaMember::commit(const KafkaSeats::Marks& marks, Instant end) {
  if (marks.empty()) return {};
  const KafkaPartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(marks.size())));
  for (const auto& [partition, mark] : marks) {
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(),
                                      static_cast<std::int32_t>(partition))
        ->offset = mark;
  }
  using Answer = std::optional<rd_kafka_resp_err_t>;
  Answer answer;
  const KafkaQueue queue(rd_kafka_queue_new(handle_.get()));
  const auto on_answer = [](rd_kafka_t*, rd_kafka_resp_err_t error,
                            rd_kafka_topic_partition_list_t*,
                            void* place) { *static_cast<Answer*>(place) = error; };
  rd_kafka_resp_err_t error =
      rd_kafka_commit_queue(handle_.get(), list.get(), queue.get(), on_answer, &answer);
  while (error == RD_KAFKA_RESP_ERR_NO_ERROR && !answer.has_value() && boot_time() < end) {
    (void)rd_kafka_queue_poll_callback(queue.get(), milliseconds_of(kTick));
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = answer.value_or(RD_KAFKA_RESP_ERR__TIMED_OUT);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR || error == RD_KAFKA_RESP_ERR__NO_OFFSET) return {};
  return to_error(error, "the last offsets are not committed");
}

void KafkaMember::close(Instant end) {
  rd_kafka_queue_cb_event_enable(group_queue_.get(), nullptr, nullptr);
  group_queue_.reset();  // Asked for by rd_kafka_consumer_close().
  const KafkaQueue queue(rd_kafka_queue_new(handle_.get()));
  const KafkaErrorObject refused(rd_kafka_consumer_close_queue(handle_.get(), queue.get()));
  if (refused != nullptr) return;
  // Late records and errors arrive here as well; a queue that only serves callbacks would abort on
  // them.
  while (rd_kafka_consumer_closed(handle_.get()) == 0 && boot_time() < end) {
    const KafkaMessage late(rd_kafka_consume_queue(queue.get(), milliseconds_of(kTick)));
  }
}

}  // namespace baton::pipeline
