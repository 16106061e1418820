#include "server/grpc/queue_wire.h"

#include <array>
#include <string_view>

#include <baton/v1/queues.pb.h>

#include "base/assert.h"
#include "server/grpc/status.h"
#include "server/grpc/times.h"
#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

constexpr std::uint32_t kUuidText = 36;

// The fields of an entry of a map, which protocol buffers fix.
constexpr unsigned kMapKey = 1;
constexpr unsigned kMapValue = 2;

// The responses of Lease and Consume are written by the same code.
static_assert(int{v1::LeaseResponse::kRegisteredFieldNumber} ==
              int{v1::ConsumeResponse::kRegisteredFieldNumber});
static_assert(int{v1::LeaseResponse::kMessagesFieldNumber} ==
              int{v1::ConsumeResponse::kMessagesFieldNumber});

unsigned number_of(ResultField field) {
  switch (field) {
    case ResultField::acks: return v1::ConsumeResponse::kAcksFieldNumber;
    case ResultField::nacks: return v1::ConsumeResponse::kNacksFieldNumber;
    case ResultField::extends: return v1::ConsumeResponse::kExtendsFieldNumber;
  }
  BATON_ASSERT(false);
  return 0;
}

void append_uuid(std::string& out, unsigned number, const Uuid& uuid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, kUuidText> text{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = kDigits[uuid.bytes[i] >> 4U];
    text[at++] = kDigits[uuid.bytes[i] & 15U];
  }
  append_blob(out, number, {text.data(), text.size()});
}

std::size_t header_bytes(std::string_view name, std::string_view value) {
  return blob_bytes(name.size()) + blob_bytes(value.size());
}

// The bytes after the field's key and length, up to the end of the message.
std::size_t body_bytes(const Delivery& delivery, const QueueTokens& tokens) {
  const Message& message = *delivery.message;
  std::size_t size = blob_bytes(kUuidText) + blob_bytes(message.payload().size()) +
                     blob_bytes(message.fairness_key().size()) + 1 +
                     varint_bytes(delivery.attempt) + 1 +
                     varint_bytes(static_cast<std::uint64_t>(message.enqueued_at().ns)) + 1 +
                     varint_bytes(static_cast<std::uint64_t>(delivery.deadline.ns)) +
                     blob_bytes(tokens.size_of(delivery.token));
  if (message.header_count() != 0) {
    for (const auto& [name, value] : message.headers()) {
      size += blob_bytes(header_bytes(name, value));
    }
  }
  if (message.has_throttle_keys()) {
    for (const std::string_view key : message.throttle_keys()) size += blob_bytes(key.size());
  }
  return size;
}

std::string error_field(unsigned number, const Error& error) {
  std::string field;
  append_blob(field, number, to_proto(error).SerializeAsString());
  return field;
}

}  // namespace

std::size_t delivery_bytes(const Delivery& delivery) {
  // Keys, lengths and numbers are some 80 bytes; the message's own buffer has the rest.
  return delivery.message->bytes().size() + 80;
}

void append_delivery(std::string& frame, const Delivery& delivery, const QueueTokens& tokens) {
  using Fields = v1::LeasedMessage;
  const Message& message = *delivery.message;
  const std::size_t size = body_bytes(delivery, tokens);
  frame.push_back(bytes_field(v1::ConsumeResponse::kMessagesFieldNumber));
  append_varint(frame, size);
  const std::size_t begin = frame.size();

  append_uuid(frame, Fields::kIdFieldNumber, message.id());
  append_blob(frame, Fields::kPayloadFieldNumber, message.payload());
  if (message.header_count() != 0) {
    for (const auto& [name, value] : message.headers()) {
      frame.push_back(bytes_field(Fields::kHeadersFieldNumber));
      append_varint(frame, header_bytes(name, value));
      append_blob(frame, kMapKey, name);
      append_blob(frame, kMapValue, value);
    }
  }
  append_blob(frame, Fields::kFairnessKeyFieldNumber, message.fairness_key());
  append_number(frame, Fields::kAttemptFieldNumber, delivery.attempt);
  append_number(frame, Fields::kEnqueuedAtNsFieldNumber,
                static_cast<std::uint64_t>(message.enqueued_at().ns));
  append_number(frame, Fields::kLeaseDeadlineNsFieldNumber,
                static_cast<std::uint64_t>(delivery.deadline.ns));
  frame.push_back(bytes_field(Fields::kLeaseTokenFieldNumber));
  append_varint(frame, tokens.size_of(delivery.token));
  tokens.append(frame, delivery.token);
  if (message.has_throttle_keys()) {
    for (const std::string_view key : message.throttle_keys())
      append_blob(frame, Fields::kThrottleKeysFieldNumber, key);
  }
  // A wrong length would make the client read one message's bytes as another's.
  BATON_ASSERT(frame.size() - begin == size);
}

void append_registered(std::string& frame, const std::string& consumer_id,
                       Duration visibility_timeout) {
  v1::ConsumerRegistered registered;
  registered.set_consumer_id(consumer_id);
  *registered.mutable_visibility_timeout() = to_proto(visibility_timeout);
  append_blob(frame, v1::ConsumeResponse::kRegisteredFieldNumber, registered.SerializeAsString());
}

void append_quiesced(std::string& frame) {
  append_number(frame, v1::ConsumeResponse::kQuiescedFieldNumber, 1);
}

void append_results(std::string& frame, ResultField field, const Results<ItemOutcome>& results) {
  const unsigned number = number_of(field);
  for_each_result(results, [&](const ItemOutcome* outcome, const Error* refused) {
    const Error* error = refused;
    if (outcome != nullptr && outcome->has_value()) error = &**outcome;
    if (error == nullptr) {
      // An empty ItemResult: success.
      frame.push_back(bytes_field(number));
      frame.push_back(0);
    } else {
      append_blob(frame, number, error_field(v1::ItemResult::kErrorFieldNumber, *error));
    }
  });
}

void append_enqueued(std::string& frame, const Results<EnqueueOutcome>& results) {
  using Fields = v1::EnqueueResult;
  constexpr unsigned kResults = v1::EnqueueResponse::kResultsFieldNumber;
  frame.reserve(frame.size() + results.items * (blob_bytes(blob_bytes(kUuidText)) + 2));
  for_each_result(results, [&](const EnqueueOutcome* outcome, const Error* refused) {
    const Error* error = refused;
    if (outcome != nullptr && outcome->error.has_value()) error = &*outcome->error;
    if (error != nullptr) {
      append_blob(frame, kResults, error_field(Fields::kErrorFieldNumber, *error));
      return;
    }
    frame.push_back(bytes_field(kResults));
    append_varint(frame, blob_bytes(kUuidText) + (outcome->duplicate ? 2 : 0));
    append_uuid(frame, Fields::kIdFieldNumber, outcome->id);
    if (outcome->duplicate) append_number(frame, Fields::kDuplicateFieldNumber, 1);
  });
}

}  // namespace baton
