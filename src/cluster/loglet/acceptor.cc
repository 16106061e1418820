#include "cluster/loglet/acceptor.h"

namespace baton::loglet {

bool Acceptor::continues(const EntryHeader& header) const {
  return !header.fence && header.boot == state_.boot && header.position == state_.position &&
         header.fragment == fragment_;
}

/// A fence may come in the middle of a round: nothing of that round was confirmed.
bool Acceptor::fences(const EntryHeader& header) const {
  return header.fence && header.last && header.fragment == 0 && header.boot > state_.boot &&
         header.position == state_.position;
}

Acceptor::Verdict Acceptor::take(const EntryView& entry) {
  const EntryHeader& header = entry.header;
  const bool fence = fences(header);
  const bool extends = header.prev == chain_ && header.generation == generation_;
  if (!extends || (!fence && !continues(header))) {
    ++strays_;
    return Verdict::stray;
  }
  if (fence || fragment_ == 0) round_ = {};
  round_.facts.append(entry.facts);
  chain_ = entry.chain;
  if (!header.last) {
    ++fragment_;
    return Verdict::fragment;
  }
  round_.position = header.position;
  round_.boot = header.boot;
  round_.now = header.now;
  state_ = {.boot = header.boot, .position = header.position + 1, .chain = entry.chain};
  fragment_ = 0;
  return Verdict::round;
}

}  // namespace baton::loglet
