#include "server/grpc/queue_convert.h"

#include <string_view>
#include <utility>

#include "server/grpc/queue_settings.h"
#include "server/session/bounds.h"
#include "server/session/checks.h"
#include "server/session/limits.h"

namespace baton {
namespace {

template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

template <class T>
Status check_count(std::string_view field, const Repeated<T>& items) {
  return check_items(field, static_cast<std::size_t>(items.size()));
}

Result<NewMessage> convert_message(v1::NewMessage& in) {
  NewMessage out;
  out.headers.reserve(in.headers().size());
  for (auto& [name, value] : *in.mutable_headers())
    out.headers.emplace_back(name, std::move(value));
  out.fairness_key = std::move(*in.mutable_fairness_key());
  out.throttle_keys.reserve(static_cast<std::size_t>(in.throttle_keys_size()));
  for (std::string& key : *in.mutable_throttle_keys()) out.throttle_keys.push_back(std::move(key));
  out.dedup_id = std::move(*in.mutable_dedup_id());
  BATON_TRY(out.delay, convert_ms("delay_ms", in.delay_ms(), limits::kDelayMax));
  BATON_TRY(out.expires_after,
            convert_ms("expires_after_ms", in.expires_after_ms(), limits::kRetentionMax));
  out.payload = std::move(*in.mutable_payload());
  BATON_TRY_STATUS(check_item(out));
  return out;
}

Result<LeaseToken> convert_item(std::string& token, const QueueTokens& tokens) {
  return tokens.open(token);
}

Result<NackItem> convert_item(v1::NackItem& in, const QueueTokens& tokens) {
  BATON_TRY(const LeaseToken token, tokens.open(in.lease_token()));
  NackItem out{.token = token, .retry = {}, .reason = {}};
  out.reason = std::move(*in.mutable_reason());
  if (in.has_delay_ms()) {
    out.retry.kind = Retry::Kind::after;
    BATON_TRY(out.retry.delay, convert_ms("delay_ms", in.delay_ms(), limits::kDelayMax));
  } else if (in.has_release() && in.release()) {
    out.retry.kind = Retry::Kind::release;
  }
  BATON_TRY_STATUS(check_item(out));
  return out;
}

Result<ExtendItem> convert_item(v1::ExtendItem& in, const QueueTokens& tokens) {
  BATON_TRY(const LeaseToken token, tokens.open(in.lease_token()));
  ExtendItem out{.token = token};
  BATON_TRY(out.timeout, convert_ms("timeout_ms", in.timeout_ms(), limits::kVisibilityTimeoutMax));
  BATON_TRY_STATUS(check_item(out));
  return out;
}

/// Sorts the items of a request into valid and refused ones.
template <class Command, class In, class Out, class Convert>
CheckedItems<Command> sort_items(std::string queue, Repeated<In>& in,
                                 std::vector<Out> Command::* good, Convert convert_one) {
  CheckedItems<Command> checked;
  checked.command.queue = std::move(queue);
  checked.items = static_cast<std::size_t>(in.size());
  std::vector<Out>& out = checked.command.*good;
  out.reserve(checked.items);
  for (int i = 0; i < in.size(); ++i) {
    Result<Out> item = convert_one(*in.Mutable(i));
    if (item.has_value()) {
      out.push_back(*std::move(item));
    } else {
      checked.refused.push_back({static_cast<std::size_t>(i), std::move(item).error()});
    }
  }
  return checked;
}

/// For items that contain a token of the queue.
template <class Command, class In, class Out>
CheckedItems<Command> sort_leases(const std::string& queue, Repeated<In>& in,
                                  std::vector<Out> Command::* good, const QueueTokens& tokens) {
  return sort_items(queue, in, good, [&](In& item) { return convert_item(item, tokens); });
}
CheckedItems<AckCommand> sort(const std::string& queue, Repeated<std::string>& in,
                              const QueueTokens& tokens) {
  return sort_leases(queue, in, &AckCommand::tokens, tokens);
}
CheckedItems<NackCommand> sort(const std::string& queue, Repeated<v1::NackItem>& in,
                               const QueueTokens& tokens) {
  return sort_leases(queue, in, &NackCommand::items, tokens);
}
CheckedItems<ExtendCommand> sort(const std::string& queue, Repeated<v1::ExtendItem>& in,
                                 const QueueTokens& tokens) {
  return sort_leases(queue, in, &ExtendCommand::items, tokens);
}

/// The fields that LeaseRequest and ConsumeStart share.
template <class Start>
Result<AttachCommand> convert_attach(Start& start) {
  AttachCommand out;
  if (start.concurrency() != 0) out.concurrency = start.concurrency();
  out.queue = std::move(*start.mutable_queue());
  out.consumer_id = std::move(*start.mutable_consumer_id());
  if (start.in_flight_max() != 0) out.in_flight_max = start.in_flight_max();
  if (start.in_flight_bytes_max() != 0) out.in_flight_bytes_max = start.in_flight_bytes_max();
  BATON_TRY_STATUS(check(out));
  return out;
}

/// For commands that only name a queue.
template <class Command>
Result<Command> convert_name(std::string* name) {
  Command out;
  out.queue = std::move(*name);
  BATON_TRY_STATUS(check(out));
  return out;
}

}  // namespace

Result<CreateQueueCommand> convert(v1::CreateQueueRequest& request) {
  CreateQueueCommand out;
  out.queue = std::move(*request.mutable_name());
  BATON_TRY(out.settings, convert_settings(request.settings()));
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<UpdateQueueCommand> convert(v1::UpdateQueueRequest& request) {
  UpdateQueueCommand out;
  out.queue = std::move(*request.mutable_name());
  BATON_TRY(out.settings, convert_settings(request.settings()));
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<DeleteQueueCommand> convert(v1::DeleteQueueRequest& request) {
  return convert_name<DeleteQueueCommand>(request.mutable_name());
}

Result<DescribeQueueCommand> convert(v1::DescribeQueueRequest& request) {
  return convert_name<DescribeQueueCommand>(request.mutable_name());
}

Result<Paged<ListQueuesCommand>> convert(const v1::ListQueuesRequest& request) {
  Paged<ListQueuesCommand> out;
  out.wanted.queue = request.prefix();
  BATON_TRY_STATUS(check(out.wanted));
  BATON_TRY(out.page,
            read_page("queues " + request.prefix(), request.page_size(), request.page_token()));
  out.wanted.after = out.page.after;
  out.wanted.described_max = out.page.items_max;
  return out;
}

Result<CheckedItems<EnqueueCommand>> convert(v1::EnqueueRequest& request) {
  BATON_TRY_STATUS(validate_queue_name(request.queue()));
  BATON_TRY_STATUS(check_count("messages", request.messages()));
  return sort_items(std::move(*request.mutable_queue()), *request.mutable_messages(),
                    &EnqueueCommand::messages, convert_message);
}

Result<CheckedItems<AckCommand>> convert(v1::AckRequest& request, const TokenSeal& seal) {
  BATON_TRY_STATUS(validate_queue_name(request.queue()));
  BATON_TRY_STATUS(check_count("lease_tokens", request.lease_tokens()));
  return sort(request.queue(), *request.mutable_lease_tokens(), seal.of(request.queue()));
}

Result<CheckedItems<NackCommand>> convert(v1::NackRequest& request, const TokenSeal& seal) {
  BATON_TRY_STATUS(validate_queue_name(request.queue()));
  BATON_TRY_STATUS(check_count("items", request.items()));
  return sort(request.queue(), *request.mutable_items(), seal.of(request.queue()));
}

Result<CheckedItems<ExtendCommand>> convert(v1::ExtendRequest& request, const TokenSeal& seal) {
  BATON_TRY_STATUS(validate_queue_name(request.queue()));
  BATON_TRY_STATUS(check_count("items", request.items()));
  return sort(request.queue(), *request.mutable_items(), seal.of(request.queue()));
}

Result<LeaveCommand> convert(v1::LeaveRequest& request) {
  LeaveCommand out;
  out.queue = std::move(*request.mutable_queue());
  out.consumer_id = std::move(*request.mutable_consumer_id());
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<PeekCommand> convert(v1::PeekRequest& request) {
  PeekCommand out;
  out.queue = std::move(*request.mutable_queue());
  out.messages_max = request.messages_max() == 0 ? limits::kPeekDefault : request.messages_max();
  BATON_TRY_STATUS(check(out));
  if (!request.id().empty()) {
    BATON_TRY(out.id, Uuid::parse(request.id()));
  }
  return out;
}

Result<PurgeCommand> convert(v1::PurgeRequest& request) {
  return convert_name<PurgeCommand>(request.mutable_queue());
}

Result<CheckedItems<CancelCommand>> convert(v1::CancelRequest& request) {
  BATON_TRY_STATUS(validate_queue_name(request.queue()));
  BATON_TRY_STATUS(check_count("ids", request.ids()));
  return sort_items(std::move(*request.mutable_queue()), *request.mutable_ids(),
                    &CancelCommand::ids, [](std::string& id) { return Uuid::parse(id); });
}

Result<RedriveCommand> convert(v1::RedriveRequest& request) {
  RedriveCommand out;
  out.queue = std::move(*request.mutable_queue());
  out.to = std::move(*request.mutable_to());
  out.messages_max = request.messages_max();
  out.reason_contains = std::move(*request.mutable_reason_contains());
  out.source_queue = std::move(*request.mutable_source_queue());
  out.rate = request.rate();
  out.dry_run = request.dry_run();
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<AttachCommand> convert(v1::LeaseRequest& request) {
  BATON_TRY(AttachCommand out, convert_attach(request));
  // The broker never leases more than the stream delivers.
  if (request.messages_max() != 0) out.credit = request.messages_max();
  return out;
}

Result<AttachCommand> convert(v1::ConsumeStart& start) {
  BATON_TRY(AttachCommand out, convert_attach(start));
  if (start.manual_credit()) out.credit = 0;
  return out;
}

Result<ConsumerItems> convert_items(v1::ConsumeRequest& request, const std::string& queue,
                                    const QueueTokens& tokens) {
  BATON_TRY_STATUS(check_count("acks", request.acks()));
  BATON_TRY_STATUS(check_count("nacks", request.nacks()));
  BATON_TRY_STATUS(check_count("extends", request.extends()));
  BATON_TRY_STATUS(check_count("begun", request.begun()));
  ConsumerItems out;
  if (request.acks_size() != 0) out.acks = sort(queue, *request.mutable_acks(), tokens);
  if (request.nacks_size() != 0) out.nacks = sort(queue, *request.mutable_nacks(), tokens);
  if (request.extends_size() != 0) out.extends = sort(queue, *request.mutable_extends(), tokens);
  for (const std::string& shown : request.begun()) {
    // A mark of a lease that has ended has no effect, so it needs no error.
    if (const Result<LeaseToken> token = tokens.open(shown); token.has_value()) {
      out.begun.push_back(*token);
    }
  }
  out.credit = request.credit();
  out.quiesce = request.quiesce();
  return out;
}

}  // namespace baton
