#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "server/session/calls.h"
#include "server/shard/broker.h"

namespace baton {

/// Asks one shard and waits for its answer; nullopt if the shard has too much to do. For threads
/// that may wait, never for one of gRPC or of a shard.
template <class Wanted>
std::optional<Wanted> ask_shard(Broker& broker, std::size_t shard, Wanted wanted) {
  constexpr std::chrono::seconds kPatience{2};
  auto promise = std::make_shared<std::promise<std::optional<Wanted>>>();
  auto answer = promise->get_future();
  const auto done = [promise](Command* command) {
    Wanted* const answered = answer_of<Wanted>(command);
    promise->set_value(answered == nullptr ? std::nullopt
                                           : std::optional<Wanted>(std::move(*answered)));
  };
  std::unique_ptr<Call> call =
      std::make_unique<CallThen<decltype(done)>>(Command(std::move(wanted)), done);
  if (!broker.submit_to(shard, call, Broker::Admission::bounded)) call.reset();
  if (answer.wait_for(kPatience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace baton
