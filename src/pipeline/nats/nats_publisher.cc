#include "pipeline/nats/nats_publisher.h"

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

constexpr std::int64_t kStallMs = 10'000;

}  // namespace

Result<std::unique_ptr<NatsPublisher>> NatsPublisher::open(const std::string& servers,
                                                           const std::string& stream,
                                                           const client::SecurityOptions& security,
                                                           std::size_t in_flight) {
  std::unique_ptr<NatsPublisher> publisher(new NatsPublisher);
  BATON_TRY(publisher->stream_, NatsStream::connect(servers, stream, security));
  BATON_TRY_STATUS(publisher->stream_->facts());
  jsOptions options;
  jsOptions_Init(&options);
  options.PublishAsync.MaxPending = static_cast<std::int64_t>(in_flight);
  options.PublishAsync.StallWait = kStallMs;
  options.PublishAsync.ErrHandler = &NatsPublisher::on_failed;
  options.PublishAsync.ErrHandlerClosure = publisher->failure_.get();
  jsCtx* raw = nullptr;
  const natsStatus status =
      natsConnection_JetStream(&raw, publisher->stream_->connection(), &options);
  if (status != NATS_OK) return coord::nats_error(coord::nats_outcome(status), "JetStream");
  publisher->jetstream_.reset(raw);
  return publisher;
}

NatsPublisher::~NatsPublisher() {
  // The connection's threads end with it; what they use is destroyed after that.
  jetstream_.reset();
  stream_.reset();
}

void NatsPublisher::on_failed(jsCtx* /*context*/, jsPubAckErr* failed, void* closure) {
  auto& failure = *static_cast<Failure*>(closure);
  const std::scoped_lock lock(failure.mutex);
  if (failure.first.has_value()) return;
  const char* text = failed->ErrText != nullptr ? failed->ErrText : natsStatus_GetText(failed->Err);
  failure.first = Error{Errc::unavailable,
                        fmt::format("publishing to {}: {}", natsMsg_GetSubject(failed->Msg), text)};
}

std::optional<Error> NatsPublisher::take_failure() {
  const std::scoped_lock lock(failure_->mutex);
  return std::exchange(failure_->first, std::nullopt);
}

Status NatsPublisher::publish(const std::string& subject, const Headers& headers,
                              std::string_view payload) {
  if (auto failed = take_failure()) return *std::move(failed);
  natsMsg* raw = nullptr;
  natsStatus status = natsMsg_Create(&raw, subject.c_str(), nullptr, payload.data(),
                                     static_cast<int>(payload.size()));
  coord::NatsMessage message(raw);
  for (const auto& [name, value] : headers) {
    if (status == NATS_OK) status = natsMsgHeader_Add(raw, name.c_str(), value.c_str());
  }
  if (status == NATS_OK) {
    raw = message.release();
    status = js_PublishMsgAsync(jetstream_.get(), &raw, nullptr);
    message.reset(raw);  // Still owned here if the call failed.
  }
  if (status == NATS_OK) return {};
  return coord::nats_error(coord::nats_outcome(status), fmt::format("publishing to {}", subject));
}

Status NatsPublisher::flush(std::chrono::milliseconds timeout) {
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MaxWait = timeout.count();
  const natsStatus status = js_PublishAsyncComplete(jetstream_.get(), &options);
  if (auto failed = take_failure()) return *std::move(failed);
  if (status == NATS_OK) return {};
  return coord::nats_error(coord::nats_outcome(status), "waiting for what was published");
}

}  // namespace baton::pipeline
