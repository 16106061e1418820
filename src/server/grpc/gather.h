#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/grpc/unary.h"
#include "server/session/calls.h"

namespace baton {

/// The answers of all shards to one question, as they come in. Thread-safe.
template <class Wanted>
class Gathered {
 public:
  explicit Gathered(std::size_t shards) : missing_(shards) {}

  /// Adds a shard's answer, null if the shard has none. Returns true for the last shard.
  bool add(Wanted* answer) {
    const std::lock_guard lock(mutex_);
    if (answer != nullptr) {
      answers_.push_back(std::move(*answer));
    } else {
      complete_ = false;
    }
    return --missing_ == 0;
  }
  /// All answers, in the order in which they came; null if a shard has none. After the last add().
  std::vector<Wanted>* answers() { return complete_ ? &answers_ : nullptr; }

 private:
  std::mutex mutex_;
  std::size_t missing_;
  bool complete_ = true;
  std::vector<Wanted> answers_;
};

/// Asks every shard the same, and ends the call once, when all have answered: with `reply`, given
/// their answers in the order in which they came, or with UNAVAILABLE when one did not take it.
template <class Wanted, class Reply>
grpc::ServerUnaryReactor* ask_all_shards(const UnaryCall& call, const Result<Wanted>& wanted,
                                         Reply reply) {
  const Status alive = call.alive(false);
  if (!wanted.has_value() || !alive.has_value()) {
    call.finish(to_status(wanted.has_value() ? alive.error() : wanted.error()));
    return call.reactor();
  }
  Broker& broker = call.state().broker;
  const std::size_t shards = broker.shards();
  const auto gathered = std::make_shared<Gathered<Wanted>>(shards);
  auto add = [call, gathered, reply](Command* done) {
    if (!gathered->add(answer_of<Wanted>(done))) return;
    std::vector<Wanted>* const answers = gathered->answers();
    if (answers == nullptr) return call.finish(to_status(busy()));
    reply(*answers);
    call.finish(grpc::Status::OK);
  };
  for (std::size_t shard = 0; shard < shards; ++shard) {
    std::unique_ptr<Call> part = std::make_unique<CallThen<decltype(add)>>(*wanted, add);
    // Not taken: the part is still ours, and its end says so.
    if (!broker.submit_to(shard, part, Broker::Admission::bounded)) part.reset();
  }
  return call.reactor();
}

/// What the shards answered in `part`, in the order of the names.
template <class Wanted, class Description>
std::vector<Description> sorted_by_name(std::vector<Wanted>& answers,
                                        std::vector<Description> Wanted::* part) {
  std::vector<Description> all;
  for (Wanted& answer : answers) std::ranges::move(answer.*part, std::back_inserter(all));
  std::ranges::sort(all, {}, &Description::name);
  return all;
}

}  // namespace baton
