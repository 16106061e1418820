#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "pipeline/engine/stored_letter.h"

namespace baton::pipeline {

/// A letter, or where and why an entry cannot be read as a letter.
using FoundLetter = Result<StoredLetter>;

/// Takes letters out of a store. For one thread.
class LetterTaker {
 public:
  LetterTaker() = default;
  LetterTaker(const LetterTaker&) = delete;
  LetterTaker& operator=(const LetterTaker&) = delete;
  virtual ~LetterTaker() = default;

  /// False: no more letters are wanted.
  [[nodiscard]] virtual bool wants_more() = 0;
  /// True: the letter is taken, and is removed after confirm(). False: the letter stays.
  virtual Result<bool> offer(FoundLetter letter) = 0;
  /// Whether the letters taken so far should be confirmed now.
  [[nodiscard]] virtual bool is_due() const = 0;
  /// Makes the letters taken since the last call durable elsewhere. Returns the indexes, in the
  /// order of taking, of letters that are permanently refused there: these stay.
  virtual Result<std::set<std::size_t>> confirm() = 0;
};

/// Stored dead letters, for commands that show them and send them back. For one thread; the
/// pipeline may write more letters meanwhile.
class DeadLetterStore {
 public:
  DeadLetterStore() = default;
  DeadLetterStore(const DeadLetterStore&) = delete;
  DeadLetterStore& operator=(const DeadLetterStore&) = delete;
  virtual ~DeadLetterStore() = default;

  /// Shows the stored letters, in their order, until `see` returns false. Changes nothing.
  virtual Status read(const std::function<bool(FoundLetter)>& see) = 0;
  /// Fails with not_found or message_not_found.
  virtual Result<StoredLetter> find(const std::string& id) = 0;
  /// Offers each letter that exists now once, and removes those that were taken and confirmed.
  /// After a crash or an error, letters that were already taken may still be stored; they are
  /// offered again. Returns how many wanted letters could not be offered in this run.
  virtual Result<std::uint64_t> take(LetterTaker& taker) = 0;
};

}  // namespace baton::pipeline
