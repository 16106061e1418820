#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cluster/loglet/acceptor.h"
#include "cluster/loglet/entry.h"

namespace baton::loglet {

/// The owner's rule: how rounds get into a log whose answers can be lost, and when they are
/// confirmed. Pure: answers and time come in, requests go out; the caller moves them.
///
/// An entry is confirmed if the entry before it is, and the engine stored it at exactly the next
/// sequence; or if the Acceptor accepts it on reading. Its own answer alone confirms nothing, and
/// neither does the answer to a later entry. What is sent again is the same, byte for byte. That
/// something was not found proves nothing: a copy of it may still be on its way.
class Appender {
 public:
  struct Options {
    std::size_t entries_in_flight_max = 4;
    std::size_t bytes_in_flight_max = std::size_t{8} << 20U;
    std::size_t entry_bytes_max = kEntryBytesMax;
    Duration answer_timeout = std::chrono::milliseconds{500};
  };
  /// Where an owner begins: what it read of the log.
  struct Begin {
    std::uint64_t sequence = 0;  // Of the last entry that it read, strays included.
    Acceptor read;               // Which took all entries up to there.
    std::uint64_t boot = 0;      // Its own: greater than that of `read`.
    std::uint32_t node = 0;
  };
  /// Store `bytes` if the last sequence of the log is `expected`. The answer names `request`.
  struct Send {
    std::uint64_t request = 0;
    std::uint64_t expected = 0;
    std::string_view bytes;  // Valid until the next call of the appender.
  };
  /// Read from the entry behind `after`, and bring what comes by take_read().
  struct Read {
    std::uint64_t after = 0;
  };
  using ReadEntry = StoredEntry;

  Appender(Options options, const Begin& begin);

  /// Takes the next round, cut into entries. The first one of a boot is its fence, and must fit
  /// into one entry.
  void append(Instant now, std::string_view facts);
  /// The engine stored the entry of this request.
  void answered(std::uint64_t request, std::uint64_t sequence);
  /// The engine did not, because the log was longer than expected.
  void refused(std::uint64_t request);
  /// The connection is another one: what was sent on the old one may or may not have arrived.
  void reconnected();
  /// What a Read brought, in order; it may be short, or nothing. Fails when an entry is damaged: to
  /// be read again, from another copy.
  Status take_read(const std::vector<ReadEntry>& entries);

  /// The requests to make now. At most one Read is under way.
  std::vector<Send> take_sends(Instant now);
  std::optional<Read> take_read_request();
  /// Whether take_read_request() has one.
  [[nodiscard]] bool wants_read() const { return read_wanted_ && !fenced_; }
  /// Looks whether an answer is overdue.
  void tick(Instant now);
  [[nodiscard]] Instant next_deadline() const;

  /// The first round that is not confirmed.
  [[nodiscard]] std::uint64_t confirmed() const { return acceptor_.state().position; }
  /// Another node's entry counts where this owner's next one would: nothing more will be confirmed,
  /// ever. A node that should own the log reads on, and begins anew under a greater boot.
  [[nodiscard]] bool fenced() const { return fenced_; }
  /// Of the last round that was confirmed; the beginning if there is none yet.
  [[nodiscard]] const Place& place() const { return place_; }
  /// Of the last entry that was read or confirmed.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  [[nodiscard]] bool idle() const { return pending_.empty(); }
  [[nodiscard]] std::size_t bytes_unconfirmed() const { return bytes_unconfirmed_; }
  [[nodiscard]] std::uint64_t resolutions() const { return resolutions_; }
  /// Equal for two owners that will behave alike; for searches.
  [[nodiscard]] std::string fingerprint() const;

 private:
  struct Pending {
    std::string bytes;
    std::uint64_t request = 0;   // 0: not sent since the last reading.
    std::uint64_t sequence = 0;  // What the engine answered; 0: nothing yet.
    Instant sent_at;
  };

  void confirm_answered();
  void confirm_first(std::uint64_t sequence);
  void resolve();
  [[nodiscard]] Pending* find(std::uint64_t request);

  Options options_;
  std::uint64_t boot_;
  std::uint32_t node_;
  std::uint64_t next_position_;
  bool fence_made_ = false;
  Chain chain_;        // Of the last entry that was made.
  Acceptor acceptor_;  // Of what is confirmed.
  Place place_;
  std::uint64_t sequence_;       // The last one that was read or confirmed.
  std::deque<Pending> pending_;  // Not confirmed, in order.
  std::size_t bytes_unconfirmed_ = 0;
  std::uint64_t next_request_ = 1;
  bool resolving_ = false;
  bool read_wanted_ = false;
  bool fenced_ = false;
  std::uint64_t resolutions_ = 0;
};

}  // namespace baton::loglet
