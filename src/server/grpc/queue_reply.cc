#include "server/grpc/queue_reply.h"

#include <optional>

#include "base/assert.h"
#include "server/grpc/queue_settings.h"
#include "server/grpc/status.h"
#include "server/grpc/times.h"
#include "server/session/limits.h"

namespace baton {
namespace {

void describe_stats(const QueueStats& in, v1::QueueStats& out) {
  out.set_ready(in.ready);
  out.set_leased(in.leased);
  out.set_delayed(in.delayed);
  out.set_bytes(in.bytes);
  out.set_active_keys(in.active_keys);
  out.set_consumers(in.consumers);
  out.set_outgoing(in.outgoing);
  out.set_dedup_ids(in.dedup_ids);
  out.set_enqueued_total(in.enqueued_total);
  out.set_delivered_total(in.delivered_total);
  out.set_acked_total(in.acked_total);
  out.set_nacked_total(in.nacked_total);
  out.set_lease_expired_total(in.lease_expired_total);
  out.set_dead_lettered_total(in.dead_lettered_total);
  out.set_dropped_total(in.dropped_total);
  out.set_deduplicated_total(in.deduplicated_total);
}

const Error* error_of(const EnqueueOutcome& outcome) {
  return outcome.error.has_value() ? &*outcome.error : nullptr;
}
const Error* error_of(const ItemOutcome& outcome) {
  return outcome.has_value() ? &*outcome : nullptr;
}

/// The failure of the whole call, if every item failed because the queue does not exist.
template <class Outcome>
grpc::Status status_of(const Results<Outcome>& results) {
  if (results.outcomes.empty() || !results.refused.empty()) return {};
  const Error* failure = nullptr;
  for (const Outcome& outcome : results.outcomes) {
    failure = error_of(outcome);
    if (failure == nullptr || failure->code != Errc::queue_not_found) return {};
  }
  return failure == nullptr ? grpc::Status{} : to_status(*failure);
}

v1::MessageState to_proto(MessageState state) {
  switch (state) {
    case MessageState::ready: return v1::MESSAGE_STATE_READY;
    case MessageState::leased: return v1::MESSAGE_STATE_LEASED;
    case MessageState::delayed: return v1::MESSAGE_STATE_DELAYED;
  }
  return v1::MESSAGE_STATE_UNSPECIFIED;
}

void show_one(const PeekedMessage& in, v1::PeekedMessage& out) {
  const Message& message = *in.message;
  out.set_id(message.id().to_string());
  out.set_payload(std::string(message.payload()));
  for (const auto& [name, value] : message.headers()) {
    (*out.mutable_headers())[std::string(name)] = std::string(value);
  }
  out.set_fairness_key(std::string(message.fairness_key()));
  out.set_attempts(in.attempts);
  *out.mutable_enqueued_at() = to_proto(message.enqueued_at());
  out.set_state(to_proto(in.state));
  out.set_consumer_id(in.consumer_id);
  if (in.state != MessageState::ready) *out.mutable_visible_at() = to_proto(in.visible_at);
}

}  // namespace

void describe(const QueueDescription& description, v1::Queue& out) {
  out.set_name(description.name);
  out.set_id(description.id.value);
  describe_settings(description.settings, *out.mutable_settings());
  describe_stats(description.stats, *out.mutable_stats());
}

void show(const std::vector<PeekedMessage>& messages, v1::PeekResponse& out) {
  std::size_t bytes = 0;
  for (const PeekedMessage& message : messages) {
    bytes += message.message->bytes().size();
    if (bytes > limits::kPeekBytes && out.messages_size() != 0) return;
    show_one(message, *out.add_messages());
  }
}

grpc::Status reply(const Results<EnqueueOutcome>& results, v1::EnqueueResponse& out) {
  grpc::Status status = status_of(results);
  if (!status.ok()) return status;
  for_each_result(results, [&](const EnqueueOutcome* outcome, const Error* refused) {
    v1::EnqueueResult& result = *out.add_results();
    BATON_ASSERT((outcome == nullptr) != (refused == nullptr));
    const Error* const error = refused != nullptr ? refused : error_of(*outcome);
    if (error != nullptr) {
      *result.mutable_error() = to_proto(*error);
    } else {
      result.set_id(outcome->id.to_string());
      result.set_duplicate(outcome->duplicate);
    }
  });
  return status;
}

grpc::Status reply(const Results<ItemOutcome>& results,
                   google::protobuf::RepeatedPtrField<v1::ItemResult>& out) {
  grpc::Status status = status_of(results);
  if (!status.ok()) return status;
  for_each_result(results, [&](const ItemOutcome* outcome, const Error* refused) {
    v1::ItemResult& result = *out.Add();
    BATON_ASSERT((outcome == nullptr) != (refused == nullptr));
    const Error* const error = refused != nullptr ? refused : error_of(*outcome);
    if (error != nullptr) *result.mutable_error() = to_proto(*error);
  });
  return status;
}

}  // namespace baton
