#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "server/grpc/unary.h"
#include "server/session/calls.h"
#include "server/session/page.h"

namespace baton {

/// Collects the answers of all shards to one question. Thread-safe.
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
  /// All answers, in the order of arrival; null if a shard has none. Called after the last add().
  std::vector<Wanted>* answers() { return complete_ ? &answers_ : nullptr; }

 private:
  std::mutex mutex_;
  std::size_t missing_;
  bool complete_ = true;
  std::vector<Wanted> answers_;
};

/// Asks every shard the same question, and ends the call once, when all have answered: with
/// `reply`, given their answers in the order of arrival, or with UNAVAILABLE if one did not take
/// it.
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
    // Not taken: the part is destroyed here, which calls its end.
    if (!broker.submit_to(shard, part, Broker::Admission::bounded)) part.reset();
  }
  return call.reactor();
}

/// Asks every shard for its part of a page. `reply` also gets the page.
template <class Wanted, class Reply>
grpc::ServerUnaryReactor* ask_for_page(const UnaryCall& call, const Result<Paged<Wanted>>& list,
                                       Reply reply) {
  const Page page = list.has_value() ? list->page : Page{};
  return ask_all_shards(
      call, list.has_value() ? Result<Wanted>(list->wanted) : Result<Wanted>(list.error()),
      [page, reply](std::vector<Wanted>& answers) { reply(answers, page); });
}

/// Fills `out` with items, by `show(item, wire)`: as many as fit into the bytes of a page, and at
/// least one. Returns the token for the next page; empty if there is none.
template <class Item, class Wire, class Key, class Show>
std::string fill_page(const Page& page, const Listed<Item>& listed,
                      google::protobuf::RepeatedPtrField<Wire>& out, Key key, Show show) {
  std::size_t bytes = 0;
  const Item* last = nullptr;
  bool more = listed.more;
  for (const Item& item : listed.items) {
    Wire& shown = *out.Add();
    show(item, shown);
    bytes += shown.ByteSizeLong();
    if (bytes > limits::kPageBytes && last != nullptr) {
      out.RemoveLast();
      more = true;
      break;
    }
    last = &item;
  }
  return more && last != nullptr ? page_token(page.list, std::invoke(key, *last)) : "";
}

}  // namespace baton
