#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "queue/commands.h"

/// The hot responses, encoded by hand: a payload is copied once, from the message's buffer into the
/// frame that the socket sends, and nothing is allocated per message or per result. Field numbers
/// and types are those of queues.proto; wire_test.cc reads every frame back with the generated
/// code.
namespace baton {

/// An item that was refused before it reached the broker, by its place in the request.
struct Refused {
  std::size_t index;
  Error error;
};

/// The fields of a response that hold one result per item.
enum class ResultField : std::uint8_t { acks = 3, nacks = 4, extends = 5 };

/// The items of one request: `refused` by us (ascending), `outcomes` of the rest, in order.
template <class Outcome>
struct Results {
  std::size_t items = 0;
  std::vector<Refused> refused;
  std::vector<Outcome> outcomes;
};

/// Calls `each(outcome*, error*)` once per item in the order of the request; one of them is null.
template <class Outcome, class Each>
void for_each_result(const Results<Outcome>& results, Each each) {
  // A shard that answers too few items, or too many, would confirm the wrong ones.
  BATON_ASSERT(results.refused.size() + results.outcomes.size() == results.items);
  std::size_t handed_over = 0;
  auto refused = results.refused.begin();
  for (std::size_t i = 0; i < results.items; ++i) {
    if (refused != results.refused.end() && refused->index == i) {
      each(static_cast<const Outcome*>(nullptr), &refused->error);
      ++refused;
    } else {
      each(&results.outcomes[handed_over++], static_cast<const Error*>(nullptr));
    }
  }
}

/// About what append_delivery() will add.
std::size_t delivery_bytes(const Delivery& delivery);
/// Field `messages` of LeaseResponse and ConsumeResponse, which has the same number in both.
void append_delivery(std::string& frame, const Delivery& delivery);
/// Field `registered` of both.
void append_registered(std::string& frame, const std::string& consumer_id,
                       Duration visibility_timeout);
/// Fields `acks`, `nacks` and `extends` of ConsumeResponse.
void append_results(std::string& frame, ResultField field, const Results<ItemOutcome>& results);
/// Field `quiesced` of ConsumeResponse.
void append_quiesced(std::string& frame);
/// A whole EnqueueResponse.
void append_enqueued(std::string& frame, const Results<EnqueueOutcome>& results);

/// Hands the frame to gRPC without a copy.
grpc::ByteBuffer to_buffer(std::string frame);

}  // namespace baton
