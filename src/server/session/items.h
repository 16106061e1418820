#pragma once

#include <cstddef>
#include <vector>

#include "base/assert.h"
#include "base/result.h"

/// Requests of many items, each with its own result.
namespace baton {

/// An item that was refused before it reached the broker, and its index in the request.
struct Refused {
  std::size_t index;
  Error error;
};

/// The items of a request: the valid ones in a command, the others refused.
template <class Command>
struct CheckedItems {
  Command command;
  std::size_t items = 0;         // Of the request.
  std::vector<Refused> refused;  // Ascending.

  /// Whether nothing is left for the broker to do.
  [[nodiscard]] bool settled() const { return refused.size() == items; }
};

/// The results of one request: `refused` by the session (ascending), `outcomes` of the rest, in
/// order.
template <class Outcome>
struct Results {
  std::size_t items = 0;
  std::vector<Refused> refused;
  std::vector<Outcome> outcomes;
};

/// Calls `each(outcome*, error*)` once per item in the order of the request; one of them is null.
template <class Outcome, class Each>
void for_each_result(const Results<Outcome>& results, Each each) {
  // A shard that answers too few or too many items would confirm the wrong ones.
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

}  // namespace baton
