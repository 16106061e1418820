#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/grpc/unary.h"
#include "server/session/calls.h"

namespace baton {

/// Asks every shard the same, and ends the call once, when all have answered: with `finish`, given
/// their answers in the order in which they came, or with UNAVAILABLE when one did not take it.
template <class Wanted, class Finish>
void ask_all_shards(const UnaryCall& call, const Wanted& wanted, Finish finish) {
  struct Gathered {
    std::mutex mutex;
    std::size_t missing;
    bool turned_away = false;
    std::vector<Wanted> answers;
  };
  Broker& broker = call.state().broker;
  const std::size_t shards = broker.shards();
  auto gathered = std::make_shared<Gathered>();
  gathered->missing = shards;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    auto add = [call, gathered, finish](Command* done) {
      {
        const std::lock_guard lock(gathered->mutex);
        if (Wanted* const answer = answer_of<Wanted>(done); answer != nullptr) {
          gathered->answers.push_back(std::move(*answer));
        } else {
          gathered->turned_away = true;
        }
        if (--gathered->missing != 0) return;
      }
      if (gathered->turned_away) return call.finish(to_status(busy()));
      finish(gathered->answers);
      call.finish(grpc::Status::OK);
    };
    std::unique_ptr<Call> part = std::make_unique<CallThen<decltype(add)>>(wanted, add);
    // Not taken: the part is still ours, and its end tells so.
    if (!broker.submit_to(shard, part, Broker::Admission::bounded)) part.reset();
  }
}

}  // namespace baton
