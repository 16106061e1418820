#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/loglet/entry.h"

namespace baton::loglet {

/// One client of a log that an engine keeps: a total order of entries with the sequences 1, 2, 3
/// and so on. Requests return at once; answers come later, in any order, or never. What has a
/// sequence is durable on a quorum of the engine's servers.
///
/// No linearizable read, no exact end and no fence is asked of an engine: Acceptor and Appender do
/// without.
///
/// Threads: one thread makes the requests and takes the answers. The function given to set_wake()
/// is called by threads of the engine.
class Loglet {
 public:
  struct Answer {
    enum class Kind : std::uint8_t {
      stored,     // To append(): the entry has `sequence`.
      refused,    // To append(): the last sequence was not the expected one.
      unable,     // To append(): the engine cannot, as `error` says; the outcome is unknown.
      entries,    // To read(): `entries`, in order, possibly fewer than there are, or none.
      trimmed,    // To trim().
      connected,  // To nothing: the connection is a new one, and answers on the old one are lost.
    };
    Kind kind = Kind::connected;
    std::uint64_t request = 0;
    std::uint64_t sequence = 0;
    std::vector<StoredEntry> entries{};
    Error error{};
  };

  Loglet() = default;
  Loglet(const Loglet&) = delete;
  Loglet& operator=(const Loglet&) = delete;
  virtual ~Loglet() = default;

  /// The most bytes that an entry may have.
  [[nodiscard]] virtual std::size_t entry_bytes_max() const = 0;

  /// Stores an entry behind all others, if the last sequence of the log is `expected`, or in any
  /// case. The caller numbers its requests; the answer has that number. The bytes are copied.
  virtual void append(std::uint64_t request, std::string_view bytes,
                      std::optional<std::uint64_t> expected) = 0;
  /// Asks for entries behind `after`. If the answer's first entry is not `after` + 1, those before
  /// it were trimmed. An engine's copy may be behind, so that "none" proves nothing.
  virtual void read(std::uint64_t request, std::uint64_t after) = 0;
  /// Drops the entries before `before`, possibly not all of them.
  virtual void trim(std::uint64_t request, std::uint64_t before) = 0;
  /// Answers stay away: connects anew, to another server if there are several.
  virtual void redial() = 0;

  /// The answers that have come.
  virtual std::vector<Answer> take_answers() = 0;
  /// `wake` is called when answers come; it must not block, nor call the engine.
  virtual void set_wake(std::function<void()> wake) = 0;

  /// A number for a read that no earlier read of this client had: late answers to a reader that is
  /// gone must not be taken for answers to the next one.
  std::uint64_t new_read() { return ++reads_; }

 private:
  std::uint64_t reads_ = 0;
};

}  // namespace baton::loglet
