#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "cluster/loglet/entry.h"

namespace baton::loglet {

/// Up to where a log was read: what a checkpoint remembers of it, and where reading goes on.
struct ReadState {
  std::uint64_t boot = 0;
  std::uint64_t position = 1;  // The next round.
  Chain chain = 0;             // Of the last entry of the round before it.

  friend bool operator==(const ReadState&, const ReadState&) = default;
};

/// A place in a log: the entry with this sequence completed the last round of `state`.
struct Place {
  std::uint64_t sequence = 0;  // 0: the beginning.
  ReadState state;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The reader's rule: which entries of a log count. It is a function of the log alone, so that
/// every reader, the owner included, accepts the same ones in the same order. Pure.
///
/// An entry counts if it extends the last one that did, and either continues its owner's rounds or
/// is the fence of a greater boot. Every other entry is a stray of a former owner.
class Acceptor {
 public:
  enum class Verdict : std::uint8_t {
    stray,     // To be skipped.
    fragment,  // Accepted; its round is not complete yet.
    round,     // Accepted, and it completes a round.
  };
  struct AcceptedRound {
    std::uint64_t position = 0;
    std::uint64_t boot = 0;
    Instant now;
    std::string facts;
  };

  explicit Acceptor(ReadState state, std::uint32_t generation = 0)
      : state_(state), generation_(generation), chain_(state.chain) {}

  Verdict take(const EntryView& entry);
  /// The round that the last take() completed.
  [[nodiscard]] const AcceptedRound& round() const { return round_; }
  /// As of the last complete round.
  [[nodiscard]] const ReadState& state() const { return state_; }
  /// Of the last entry that was accepted.
  [[nodiscard]] Chain chain() const { return chain_; }
  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  [[nodiscard]] std::uint64_t strays() const { return strays_; }

 private:
  [[nodiscard]] bool continues(const EntryHeader& header) const;
  [[nodiscard]] bool fences(const EntryHeader& header) const;

  ReadState state_;
  std::uint32_t generation_;
  Chain chain_;
  std::uint32_t fragment_ = 0;  // The next one of the round at state_.position.
  AcceptedRound round_;
  std::uint64_t strays_ = 0;
};

}  // namespace baton::loglet
