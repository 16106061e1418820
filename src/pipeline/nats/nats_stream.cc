#include "pipeline/nats/nats_stream.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "worker/nats/kind.h"
#include "worker/stores/deadline.h"

namespace baton::pipeline {
namespace {

using coord::NatsDestroy;
using StreamInfo = std::unique_ptr<jsStreamInfo, NatsDestroy<jsStreamInfo_Destroy>>;
using ConsumerNames =
    std::unique_ptr<jsConsumerNamesList, NatsDestroy<jsConsumerNamesList_Destroy>>;
using Statistics = std::unique_ptr<natsStatistics, NatsDestroy<natsStatistics_Destroy>>;

constexpr std::string_view kAck = "+ACK";
constexpr std::chrono::seconds kConnectTimeout{5};
constexpr std::int64_t kApiTimeoutMs = 2'000;
// A delivered message stays in the pipeline for the whole of an outage of the sink. A lost message
// is found by its missing number, or by the broken connection, not by this timeout.
constexpr std::chrono::nanoseconds kAckWait = std::chrono::hours{24 * 365};

jsOptions api_options() {
  jsOptions options;
  jsOptions_Init(&options);
  options.Wait = kApiTimeoutMs;
  return options;
}

Error api_error(natsStatus status, jsErrCode code, std::string_view doing) {
  Error error = coord::nats_error(coord::nats_outcome(status, static_cast<int>(code)), doing);
  if (code == JSStreamNotFoundErr) error.code = Errc::stream_not_found;
  if (code == JSConsumerNotFoundErr) error.code = Errc::not_found;
  return error;
}

}  // namespace

Result<std::shared_ptr<NatsStream>> NatsStream::connect(const std::string& servers,
                                                        const std::string& stream,
                                                        const client::SecurityOptions& security) {
  // Addresses are parsed like those of a store.
  static constexpr std::array kOnlyNats{coord::StoreRow{&coord::kNatsKind, &coord::kNatsAdapter}};
  BATON_TRY(const coord::StoreUrl url, coord::parse_store_url("nats://" + servers, kOnlyNats));
  BATON_TRY(auto link,
            coord::NatsLink::connect(url.endpoints, coord::Deadline(kConnectTimeout), security));
  return std::shared_ptr<NatsStream>(new NatsStream(std::move(link), stream));
}

bool NatsStream::is_connected() const {
  return natsConnection_Status(link_->connection()) == NATS_CONN_STATUS_CONNECTED;
}

std::uint64_t NatsStream::breaks() const {
  natsStatistics* raw = nullptr;
  if (natsStatistics_Create(&raw) != NATS_OK) return 0;
  const Statistics statistics(raw);
  std::uint64_t reconnects = 0;
  if (natsConnection_GetStats(link_->connection(), raw) != NATS_OK) return 0;
  natsStatistics_GetCounts(raw, nullptr, nullptr, nullptr, nullptr, &reconnects);
  return reconnects;
}

Result<NatsStream::Facts> NatsStream::facts() {
  jsOptions options = api_options();
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetStreamInfo(&raw, link_->jetstream(), name_.c_str(), &options, &code);
  const StreamInfo info(raw);
  if (status != NATS_OK) return api_error(status, code, fmt::format("stream {}", name_));
  Facts facts;
  for (int i = 0; i < info->Config->SubjectsLen; ++i) {
    facts.subjects.emplace_back(info->Config->Subjects[i]);
  }
  facts.first = info->State.FirstSeq;
  facts.last = info->State.LastSeq;
  facts.messages = info->State.Msgs;
  facts.created_at_ns = info->Created;
  facts.keeps_read = info->Config->Retention == js_LimitsPolicy;
  return facts;
}

Result<std::vector<std::string>> NatsStream::consumers() {
  BATON_TRY_STATUS(
      link_->wait_until_connected(coord::Deadline(std::chrono::milliseconds(kApiTimeoutMs))));
  jsOptions options = api_options();
  jsConsumerNamesList* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_ConsumerNames(&raw, link_->jetstream(), name_.c_str(), &options, &code);
  const ConsumerNames list(raw);
  if (status == NATS_NOT_FOUND && code == 0) return std::vector<std::string>();
  if (status != NATS_OK) return api_error(status, code, fmt::format("consumers of {}", name_));
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(list->Count));
  for (int i = 0; i < list->Count; ++i) names.emplace_back(list->List[i]);
  return names;
}

Result<NatsStream::Consumer> NatsStream::consumer(const std::string& consumer) {
  jsOptions options = api_options();
  jsConsumerInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = js_GetConsumerInfo(&raw, link_->jetstream(), name_.c_str(),
                                               consumer.c_str(), &options, &code);
  const coord::NatsConsumerInfo info(raw);
  if (status != NATS_OK) return api_error(status, code, fmt::format("consumer {}", consumer));
  // If nothing is acknowledged yet, the position is the consumer's start.
  const std::uint64_t start = std::max<std::uint64_t>(info->Config->OptStartSeq, 1);
  return Consumer{.floor = std::max(info->AckFloor.Stream, start - 1),
                  .delivered = info->Delivered.Stream,
                  .pending = info->NumPending};
}

Status NatsStream::create(const NewConsumer& consumer) {
  jsOptions options = api_options();
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = consumer.name.c_str();
  config.FilterSubject = consumer.subject.c_str();
  config.DeliverPolicy = js_DeliverByStartSequence;
  config.OptStartSeq = consumer.start;
  config.AckPolicy = js_AckAll;
  config.AckWait = kAckWait.count();
  config.MaxAckPending = -1;
  jsConsumerInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_AddConsumer(&raw, link_->jetstream(), name_.c_str(), &config, &options, &code);
  const coord::NatsConsumerInfo info(raw);
  if (status == NATS_OK) return {};
  return api_error(status, code, fmt::format("making consumer {}", consumer.name));
}

Status NatsStream::remove(const std::string& consumer) {
  jsOptions options = api_options();
  jsErrCode code{};
  const natsStatus status =
      js_DeleteConsumer(link_->jetstream(), name_.c_str(), consumer.c_str(), &options, &code);
  if (status == NATS_OK || code == JSConsumerNotFoundErr) return {};
  return api_error(status, code, fmt::format("removing consumer {}", consumer));
}

Status NatsStream::acknowledge(const std::string& reply_subject) {
  const natsStatus status = natsConnection_Publish(link_->connection(), reply_subject.c_str(),
                                                   kAck.data(), static_cast<int>(kAck.size()));
  if (status == NATS_OK) return {};
  return coord::nats_error(coord::nats_outcome(status), "acknowledging");
}

Status NatsStream::acknowledge(const std::string& reply_subject,
                               std::chrono::milliseconds timeout) {
  natsMsg* raw = nullptr;
  const natsStatus status =
      natsConnection_Request(&raw, link_->connection(), reply_subject.c_str(), kAck.data(),
                             static_cast<int>(kAck.size()), timeout.count());
  const coord::NatsMessage answer(raw);
  if (status == NATS_OK) return {};
  return coord::nats_error(coord::nats_outcome(status), "acknowledging");
}

}  // namespace baton::pipeline
