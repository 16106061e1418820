#include "server/session/subscription_talk.h"

#include <utility>

#include "server/session/limits.h"

namespace baton::subscription {
namespace {

/// The approximate bytes of an item in memory and on the wire.
std::size_t bytes_of(const Said& said) {
  constexpr std::size_t kSmall = 64;
  if (const auto* batch = std::get_if<Batches>(&said)) {
    return kSmall + batch->chunk.batches.size() + batch->chunk.records.size();
  }
  if (const auto* started = std::get_if<Started>(&said)) {
    return kSmall + 2 * started->partitions.size();
  }
  return kSmall;
}

}  // namespace

void Request::clear() {
  heartbeat.reset();
  starts.clear();
  credits.clear();
  offsets.clear();
  replies.clear();
  unsubscribes.clear();
}

void OutputQueue::say(Said said) {
  const std::size_t bytes = bytes_of(said);
  bytes_ += bytes;
  pieces_.push_back({.said = std::move(said), .bytes = bytes});
}

void OutputQueue::say_batch(const void* feed, Batches batch, Credit cost) {
  say(std::move(batch));
  pieces_.back().feed = feed;
  pieces_.back().cost = cost;
}

void OutputQueue::say_ahead_of_batches(Said said) {
  const auto last_word = std::find_if(pieces_.rbegin(), pieces_.rend(),
                                      [](const Piece& piece) { return piece.feed == nullptr; });
  const std::size_t bytes = bytes_of(said);
  bytes_ += bytes;
  pieces_.insert(last_word.base(), {.said = std::move(said), .bytes = bytes});
}

Credit OutputQueue::drop_batches(const void* feed) {
  Credit cost;
  std::erase_if(pieces_, [&](const Piece& piece) {
    if (piece.feed != feed) return false;
    bytes_ -= piece.bytes;
    cost.add(piece.cost);
    return true;
  });
  return cost;
}

void OutputQueue::take(Output& output) {
  std::size_t bytes = 0;
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    const bool fits = bytes + piece.bytes <= limits::kFrameBytes &&
                      (output.empty() || piece.said.index() >= output.back().index());
    if (!output.empty() && !fits) break;
    bytes += piece.bytes;
    bytes_ -= piece.bytes;
    output.push_back(std::move(piece.said));
    pieces_.pop_front();
  }
}

}  // namespace baton::subscription
