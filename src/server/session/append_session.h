#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "server/session/producer_session.h"
#include "server/shard/stream_commands.h"

namespace baton {

/// One outcome for each batch and each record of a request.
struct AppendOutcomes {
  std::vector<BatchOutcome> batches;
  std::vector<BatchOutcome> records;
};

/// Takes batches of records, and returns their outcomes.
class AppendSession final : public ProducerSession<AppendOutcomes> {
 public:
  explicit AppendSession(std::shared_ptr<ServerState> state) : ProducerSession(std::move(state)) {}

  /// Takes a request of `bytes` on the wire.
  void take(AppendCommand command, std::size_t bytes);
  /// Takes a request that is wrong as a whole: each of its items gets the error, and the session
  /// continues.
  void refuse(AppendOutcomes outcomes, std::size_t bytes);
};

}  // namespace baton
