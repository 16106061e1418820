#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/strong.h>

#include "base/result.h"
#include "base/time.h"
#include "base/uuid.h"

namespace baton {

/// The number of a queue in its shard. Never given twice, so that bytes of a deleted queue are
/// never taken for those of a new queue of the same name.
using QueueId = Strong<struct QueueIdTag>;

/// A message's place in its queue, assigned when it becomes ready. Never assigned twice.
using Sequence = Strong<struct SequenceTag>;

/// One registration of a consumer; unique in the life of a broker process.
using ConsumerNumber = Strong<struct ConsumerNumberTag>;

/// Names one lease of a shard for ever: the boot number makes lease numbers unique across restarts
/// of the broker. token.h has the form that clients see.
struct LeaseToken {
  std::uint64_t boot = 0;
  std::uint64_t number = 0;
  auto operator<=>(const LeaseToken&) const = default;
};

/// Names one transfer of a message from a shard to another. Unique among all transfers of the
/// sending shard, for ever: two transfers of the same message have two names.
struct TransferId {
  std::uint64_t boot = 0;
  std::uint64_t number = 0;
  auto operator<=>(const TransferId&) const = default;

  /// The name of a transfer from before transfers had numbers. It is unique because no boot number
  /// is as great as the time that a message's id begins with.
  static TransferId of_message(const Uuid& id);
};

using Header = std::pair<std::string, std::string>;

/// What a producer sends. Checked against the limits by validate(), before it reaches a machine.
struct NewMessage {
  std::string payload;
  std::vector<Header> headers;
  std::string fairness_key;
  std::vector<std::string> throttle_keys;
  Duration delay{0};
  std::string dedup_id;
  Duration expires_after{0};  // 0 = only the queue's retention counts.
};

/// Fails with the first field that is out of its limits. The payload's limit is a setting of the
/// queue.
Status validate(const NewMessage& message);
Status validate_queue_name(std::string_view name);
Status validate_consumer_id(std::string_view id);

}  // namespace baton

template <>
struct std::hash<baton::LeaseToken> {
  std::size_t operator()(const baton::LeaseToken& token) const noexcept {
    return std::hash<std::uint64_t>{}(token.number * 0x9e3779b97f4a7c15ULL ^ token.boot);
  }
};
