#include "worker/nats/nats_watch.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

// What waits for a slow callback; past it the watch breaks rather than leave something out.
constexpr int kPendingMessagesMax = 65'536;
constexpr int kPendingBytesMax = 64 * 1024 * 1024;

std::int64_t nanoseconds(std::chrono::milliseconds duration) {
  return std::chrono::nanoseconds(duration).count();
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.begin(), text.end(), value);
  if (problem != std::errc{} || end != text.end()) return std::nullopt;
  return value;
}

std::string_view header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, name, &value) != NATS_OK || value == nullptr) return {};
  return value;
}

/// An inbox is a string that libnats frees.
using Inbox = std::unique_ptr<natsInbox, NatsDestroy<natsInbox_Destroy>>;

}  // namespace

std::optional<NatsDelivery> parse_nats_delivery(std::string_view reply) {
  constexpr std::size_t kPartsShort = 9;
  constexpr std::size_t kPartsLong = 11;  // And maybe more at the end.
  std::array<std::string_view, kPartsLong> parts{};
  std::size_t count = 0;
  while (count < parts.size() && !reply.empty()) {
    const auto dot = reply.find('.');
    parts[count++] = reply.substr(0, dot);
    reply.remove_prefix(dot == std::string_view::npos ? reply.size() : dot + 1);
  }
  if (count < kPartsShort || parts[0] != "$JS" || parts[1] != "ACK") return std::nullopt;
  if (count != kPartsShort && count != kPartsLong) return std::nullopt;
  const std::size_t first = count == kPartsShort ? 5 : 7;
  const auto stream_sequence = number(parts.at(first));
  const auto consumer_sequence = number(parts.at(first + 1));
  if (!stream_sequence || !consumer_sequence) return std::nullopt;
  return NatsDelivery{.stream_sequence = *stream_sequence, .consumer_sequence = *consumer_sequence};
}

bool is_nats_tombstone(natsMsg* message) {
  const std::string_view operation = header(message, "KV-Operation");
  return operation == "DEL" || operation == "PURGE" ||
         !header(message, "Nats-Marker-Reason").empty();
}

NatsWatch::NatsWatch(std::shared_ptr<NatsLink> link, const NatsBucket& bucket, std::string prefix,
                     WatchCallback callback)
    : link_(std::move(link)),
      bucket_(bucket),
      prefix_(std::move(prefix)),
      callback_(std::move(callback)) {}

Result<std::unique_ptr<Watch>> NatsWatch::start(std::shared_ptr<NatsLink> link,
                                                const NatsBucket& bucket, std::string prefix,
                                                WatchCallback callback, const Deadline& deadline) {
  std::unique_ptr<NatsWatch> watch(
      new NatsWatch(std::move(link), bucket, std::move(prefix), std::move(callback)));
  BATON_TRY(const std::vector<std::string> keys,
            list_nats_keys(*watch->link_, bucket, watch->prefix_, deadline));
  watch->awaited_ = {keys.begin(), keys.end()};
  BATON_TRY_STATUS(watch->subscribe(deadline));
  watch->thread_ = std::thread([raw = watch.get()] { raw->run(); });
  return watch;
}

NatsWatch::~NatsWatch() {
  stopping_ = true;
  if (!subscription_) return;
  // Wakes the thread up. The server drops the consumer when nobody listens to it any more.
  natsSubscription_Unsubscribe(subscription_.get());
  if (thread_.joinable()) thread_.join();
  link_->forget(subscription_.get());
}

Status NatsWatch::subscribe(const Deadline& deadline) {
  BATON_TRY_STATUS(link_->wait_until_connected(deadline));
  natsInbox* raw_inbox = nullptr;
  natsStatus status = natsInbox_Create(&raw_inbox);
  if (status != NATS_OK) return nats_error(nats_outcome(status), "watch");
  const Inbox inbox(raw_inbox);
  BATON_TRY(subscription_,
            nats_subscribe(link_, inbox.get(), kPendingMessagesMax, kPendingBytesMax));
  link_->end_when_broken(subscription_.get());

  const std::string filter = bucket_.filter_of(prefix_);
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.DeliverSubject = inbox.get();
  config.DeliverPolicy = js_DeliverLastPerSubject;
  config.AckPolicy = js_AckNone;
  config.ReplayPolicy = js_ReplayInstant;
  config.FilterSubject = filter.c_str();
  config.Heartbeat = nanoseconds(limits::kWatchHeartbeat);
  config.Replicas = 1;
  config.MemoryStorage = true;
  jsOptions options;
  jsOptions_Init(&options);
  options.Wait = deadline.left().count() + 1;
  jsConsumerInfo* raw = nullptr;
  jsErrCode code{};
  link_->count_request();
  status =
      js_AddConsumer(&raw, link_->jetstream(), bucket_.stream.c_str(), &config, &options, &code);
  const NatsConsumerInfo info(raw);
  if (status != NATS_OK) return nats_error(nats_outcome(status, static_cast<int>(code)), "watch");
  return {};
}

void NatsWatch::run() {
  if (awaited_.empty()) end_snapshot();
  std::string over;
  while (over.empty()) {
    natsMsg* raw = nullptr;
    const natsStatus status =
        natsSubscription_NextMsg(&raw, subscription_.get(), limits::kWatchSilence.count());
    const NatsMessage message(raw);
    if (stopping_) return;
    switch (status) {
      case NATS_OK: over = take(raw); break;
      case NATS_TIMEOUT:
        over = fmt::format("no word from the server for {} ms", limits::kWatchSilence.count());
        break;
      case NATS_SLOW_CONSUMER: over = "the changes came faster than they were taken"; break;
      default: over = "the connection broke"; break;
    }
  }
  callback_({.kind = WatchEvent::Kind::broken, .entry = {.value = over}});
}

std::string NatsWatch::take(natsMsg* message) {
  if (const auto status = header(message, "Status"); !status.empty()) {
    return take_status(message, status);
  }
  const char* reply = natsMsg_GetReply(message);
  const auto delivery = parse_nats_delivery(reply == nullptr ? "" : reply);
  if (!delivery) return "a message that is not of the bucket";
  if (delivery->consumer_sequence != consumer_sequence_ + 1) return "a message got lost";
  consumer_sequence_ = delivery->consumer_sequence;
  show(message, delivery->stream_sequence);
  return {};
}

std::string NatsWatch::take_status(natsMsg* message, std::string_view status) {
  if (status != "100") {
    return fmt::format("the server ended it: {} {}", status, header(message, "Description"));
  }
  const auto last = number(header(message, "Nats-Last-Consumer"));
  if (last && *last != consumer_sequence_) return "a message got lost";
  // It is sent when there is nothing else to send: what still lacks was purged meanwhile.
  end_snapshot();
  return {};
}

void NatsWatch::show(natsMsg* message, std::uint64_t revision) {
  std::string_view key = natsMsg_GetSubject(message);
  if (!key.starts_with(bucket_.subjects)) return;
  key.remove_prefix(bucket_.subjects.size());
  if (!key.starts_with(prefix_)) return;
  WatchEvent event{.kind = WatchEvent::Kind::put,
                   .entry = {.key = std::string(key), .revision = revision}};
  if (is_nats_tombstone(message)) {
    event.kind = WatchEvent::Kind::removed;
  } else {
    event.entry.value.assign(natsMsg_GetData(message),
                             static_cast<std::size_t>(natsMsg_GetDataLength(message)));
  }
  if (snapshot_ended_) return callback_(std::move(event));
  show_in_snapshot(std::move(event));
}

void NatsWatch::show_in_snapshot(WatchEvent event) {
  awaited_.erase(event.entry.key);
  const bool is_there = event.kind == WatchEvent::Kind::put;
  // Keys that were removed before the watch began are not reported.
  const bool is_news =
      is_there ? (shown_.insert(event.entry.key), true) : shown_.erase(event.entry.key) != 0;
  if (is_news) callback_(std::move(event));
  if (awaited_.empty()) end_snapshot();
}

void NatsWatch::end_snapshot() {
  if (std::exchange(snapshot_ended_, true)) return;
  awaited_.clear();
  shown_.clear();
  callback_({.kind = WatchEvent::Kind::snapshot_end});
}

}  // namespace baton::coord
