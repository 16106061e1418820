#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/queue/commands.h"
#include "core/queue/token.h"
#include "server/session/items.h"

/// The most frequent responses, encoded by hand: a payload is copied once, from the message's
/// buffer into the frame that the socket sends, and nothing is allocated per message or per result.
/// Field numbers are the generated constants; queue_wire_test.cc reads every frame back with the
/// generated code.
namespace baton {

/// The fields of a response with one result per item.
enum class ResultField : std::uint8_t { acks, nacks, extends };

/// The approximate bytes that append_delivery() will add.
std::size_t delivery_bytes(const Delivery& delivery);
/// Field `messages` of LeaseResponse and ConsumeResponse, which has the same number in both.
void append_delivery(std::string& frame, const Delivery& delivery, const QueueTokens& tokens);
/// Field `registered` of both.
void append_registered(std::string& frame, const std::string& consumer_id,
                       Duration visibility_timeout);
/// Fields `acks`, `nacks` and `extends` of ConsumeResponse.
void append_results(std::string& frame, ResultField field, const Results<ItemOutcome>& results);
/// Field `quiesced` of ConsumeResponse.
void append_quiesced(std::string& frame);
/// A whole EnqueueResponse.
void append_enqueued(std::string& frame, const Results<EnqueueOutcome>& results);

}  // namespace baton
