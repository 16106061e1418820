#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/siphash.h"
#include "core/queue/types.h"

namespace baton {

/// The tokens of one queue's leases, as clients see and show them. Pure; const, and so thread-safe.
///
/// ```
///   u8      format (1)
///   varint  shard       varint  boot       varint  lease number
///   8       proof: SipHash-2-4 of the bytes before it, under the key of the queue
/// ```
///
/// Shard, boot and number make a token unique in the life of a data folder. The proof makes it one
/// that only its lease's holder can have: who has seen other tokens guesses it with chance 2^-64.
class QueueTokens {
 public:
  QueueTokens() = default;
  QueueTokens(const SipKey& key, std::uint64_t shard, std::string_view queue);

  [[nodiscard]] std::size_t size_of(LeaseToken token) const;
  void append(std::string& out, LeaseToken token) const;
  [[nodiscard]] std::string seal(LeaseToken token) const;
  /// The lease that `shown` names. Fails with lease_lost if those bytes are not a token of this
  /// queue, after a comparison whose duration does not depend on the proof.
  [[nodiscard]] Result<LeaseToken> open(std::string_view shown) const;

 private:
  SipKey key_{};  // Derived from the broker's key and the queue's name.
  std::uint64_t shard_ = 0;
};

/// Makes the QueueTokens of any queue.
struct TokenSeal {
  SipKey key{};
  std::uint64_t shards = 1;

  [[nodiscard]] QueueTokens of(std::string_view queue) const;
};

}  // namespace baton
