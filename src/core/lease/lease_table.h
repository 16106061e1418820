#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "base/time.h"

namespace baton {

/// Which token holds what, and until when. Pure; owned by one machine, not thread-safe.
///
/// A token is held from grant() to end(), and only in between does find() know it: that is the
/// fence. The table never ends a lease by itself. Passing the deadline only makes expired() name
/// it, so that the machine can record the end as a fact first; until then the holder's
/// acknowledgement is good.
///
/// Cost: O(1) to find, O(log n) to grant, extend and end; finding expired leases costs O(1) each.
template <class Token, class Held>
class LeaseTable {
 public:
  void grant(Token token, Instant deadline, Held* held) {
    const auto [entry, added] = leases_.try_emplace(token);
    // Two leases under one token would let one holder acknowledge the other's work.
    BATON_ASSERT(added);
    // Deadlines mostly come in rising order, which makes the hint right and the insertion O(1).
    entry->second = {held, order_.emplace_hint(order_.end(), deadline, token)};
  }

  /// What `token` holds; null when its lease is over, or never existed.
  [[nodiscard]] Held* find(Token token) const {
    const auto entry = leases_.find(token);
    return entry == leases_.end() ? nullptr : entry->second.held;
  }

  void extend(Token token, Instant deadline) {
    const auto entry = leases_.find(token);
    BATON_ASSERT(entry != leases_.end());
    order_.erase(entry->second.place);
    entry->second.place = order_.emplace(deadline, token).first;
  }

  void end(Token token) {
    const auto entry = leases_.find(token);
    BATON_ASSERT(entry != leases_.end());
    order_.erase(entry->second.place);
    leases_.erase(entry);
  }

  /// The lease with the earliest deadline, if that has passed; null otherwise.
  [[nodiscard]] Held* expired(Instant now) const {
    if (order_.empty() || order_.begin()->first > now) return nullptr;
    return find(order_.begin()->second);
  }

  [[nodiscard]] Instant next_deadline() const {
    return order_.empty() ? Instant::never() : order_.begin()->first;
  }

  [[nodiscard]] std::size_t size() const { return leases_.size(); }

 private:
  using Order = std::set<std::pair<Instant, Token>>;
  struct Lease {
    Held* held = nullptr;
    typename Order::iterator place;
  };

  // Looked up, never iterated: the order of a hash table must not influence a decision.
  std::unordered_map<Token, Lease> leases_;
  Order order_;
};

}  // namespace baton
