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

/// Batches of records in, their outcomes out.
class AppendSession final : public ProducerSession<AppendOutcomes> {
 public:
  explicit AppendSession(std::shared_ptr<ServerState> state) : ProducerSession(std::move(state)) {}

  /// A request of `bytes` on the wire.
  void take(AppendCommand command, std::size_t bytes);
  /// A request that is wrong as a whole: so is each of its items, and the session lives on.
  void refuse(AppendOutcomes outcomes, std::size_t bytes);
};

}  // namespace baton
