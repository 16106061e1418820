#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "pipeline/engine/stored_letter.h"

namespace baton::pipeline {

/// A letter, or why what stands there cannot be read as one, and where that is.
using FoundLetter = Result<StoredLetter>;

/// Whoever takes letters away. One thread.
class LetterTaker {
 public:
  LetterTaker() = default;
  LetterTaker(const LetterTaker&) = delete;
  LetterTaker& operator=(const LetterTaker&) = delete;
  virtual ~LetterTaker() = default;

  /// False: no more are wanted.
  [[nodiscard]] virtual bool wants_more() = 0;
  /// True: it is taken, and is to be gone once confirm() has said so. False: it stays.
  virtual Result<bool> offer(FoundLetter letter) = 0;
  /// Whether it is time to confirm what was taken.
  [[nodiscard]] virtual bool is_due() const = 0;
  /// What was taken since the last time is safe elsewhere, except for these, by the order in which
  /// they were taken: they are refused there for good, and stay.
  virtual Result<std::set<std::size_t>> confirm() = 0;
};

/// Where dead letters are kept, for those who look at them and send them back. One thread; the
/// pipeline may write more letters meanwhile.
class DeadLetterStore {
 public:
  DeadLetterStore() = default;
  DeadLetterStore(const DeadLetterStore&) = delete;
  DeadLetterStore& operator=(const DeadLetterStore&) = delete;
  virtual ~DeadLetterStore() = default;

  /// Shows those that are there, in their order, until `see` says false. Changes nothing.
  virtual Status read(const std::function<bool(FoundLetter)>& see) = 0;
  /// Fails with not_found or message_not_found.
  virtual Result<StoredLetter> find(const std::string& id) = 0;
  /// Offers each that is there now once, and removes what was taken and confirmed. A crash on the
  /// way, or an error, may leave some that were taken already: they will be offered again. Answers
  /// how many could not be offered in this run, though more were wanted.
  virtual Result<std::uint64_t> take(LetterTaker& taker) = 0;
};

}  // namespace baton::pipeline
