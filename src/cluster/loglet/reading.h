#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/loglet/acceptor.h"
#include "cluster/loglet/loglet.h"

namespace baton::loglet {

/// Bounds of the requests to an engine.
struct Patience {
  /// A read without an answer is sent again.
  Duration read_timeout = std::chrono::milliseconds{500};
  /// When nothing at all is answered, another server is dialled.
  Duration silence = std::chrono::seconds{2};
  /// Pauses between attempts that bring nothing new.
  Duration pause_min = std::chrono::milliseconds{20};
  Duration pause_max = std::chrono::milliseconds{200};
  /// How often a damaged entry is read again, from whichever copy answers, before it is believed.
  int damaged_max = 6;
};

/// When to dial another server: something was asked, and nothing was answered since.
class Silence {
 public:
  explicit Silence(Duration bound) : bound_(bound) {}

  void asked(Instant now) {
    if (since_ == Instant::never()) since_ = now;
  }
  /// An answer came; `waiting`: others are still missing.
  void heard(bool waiting, Instant now) { since_ = waiting ? now : Instant::never(); }
  /// True once for each bound that passes in silence.
  bool is_over(Instant now) {
    if (now < deadline()) return false;
    since_ = now;
    return true;
  }
  [[nodiscard]] Instant deadline() const {
    return since_ == Instant::never() ? since_ : since_ + bound_;
  }

 private:
  Duration bound_;
  Instant since_ = Instant::never();
};

/// One read at a time, which is sent again until it is answered.
class ReadCall {
 public:
  explicit ReadCall(Duration timeout) : timeout_(timeout) {}

  void begin(Loglet& engine, std::uint64_t after, Instant now) {
    after_ = after;
    send(engine, now);
  }
  /// Whether the answer is the one that is waited for. Ends the call.
  bool take(const Loglet::Answer& answer) {
    if (!under_way_ || answer.request != request_) return false;
    under_way_ = false;
    return true;
  }
  /// Sends it again if it is overdue, or if the connection is a new one.
  void repeat(Loglet& engine, bool reconnected, Instant now) {
    if (under_way_ && (reconnected || now >= deadline())) send(engine, now);
  }
  [[nodiscard]] bool under_way() const { return under_way_; }
  [[nodiscard]] Instant deadline() const {
    return under_way_ ? sent_at_ + timeout_ : Instant::never();
  }

 private:
  void send(Loglet& engine, Instant now) {
    under_way_ = true;
    sent_at_ = now;
    request_ = engine.new_read();
    engine.read(request_, after_);
  }

  Duration timeout_;
  std::uint64_t after_ = 0;
  std::uint64_t request_ = 0;
  bool under_way_ = false;
  Instant sent_at_;
};

/// Reads a log from a place to its end, through the Acceptor: what recovery does. Pure.
class Reader {
 public:
  using Visit = std::function<Status(const Acceptor::AcceptedRound&)>;

  /// Of a place that is not the beginning, the entry there is read again: if the log has another
  /// one, or none, the log is not what it was.
  Reader(Patience patience, Loglet& engine, const Place& from, std::uint32_t generation);

  /// Takes what came, and asks for more. Fails with journal_corrupt when the log lacks entries or
  /// has damaged ones, and with what `visit` fails with.
  Status turn(Instant now, const Visit& visit);
  /// Nothing more came: the end, as far as this copy of the log knows.
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Instant next_deadline() const;

  /// Of the last entry that was read, strays included.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Of the last round that was read.
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] const Acceptor& acceptor() const { return acceptor_; }

 private:
  Status take(const Loglet::Answer& answer, const Visit& visit);
  Status take_entry(const StoredEntry& stored, const Visit& visit);
  [[nodiscard]] Status check_place(const EntryView& entry) const;

  Patience patience_;
  Loglet& engine_;
  Place from_;
  Place place_;
  Acceptor acceptor_;
  std::uint64_t sequence_;
  bool place_checked_;
  bool done_ = false;
  int damaged_ = 0;
  int missing_ = 0;
  Instant ask_at_;
  ReadCall call_;
  Silence silence_;
};

}  // namespace baton::loglet
