#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "base/result.h"

namespace baton {

/// What a Session may do with its connection; implemented by the codec of a protocol. Destroyed
/// some time after finish().
class SessionPort {
 public:
  using Lock = std::unique_lock<std::mutex>;

  SessionPort() = default;
  SessionPort(const SessionPort&) = delete;
  SessionPort& operator=(const SessionPort&) = delete;
  virtual ~SessionPort() = default;

  /// Asks for the next request; it is taken between Session::begin_request() and end_request().
  virtual void read() = 0;
  /// Takes the session's next output and begins to write it; Session::on_written() ends that.
  /// Called with the session's lock, which it releases to encode and to write.
  virtual void write(Lock& lock) = 0;
  /// Ends the connection: in order, or with an error (`cancelled`: the client is gone).
  virtual void finish(const Status& status) = 0;
  /// Gives up a write that may never end: the client is gone silently.
  virtual void cancel() {}
  /// Whether the client cancelled or is gone. May be true before on_cancel() is called.
  [[nodiscard]] virtual bool is_cancelled() const { return false; }
};

/// One open session of a client, in any protocol: requests come in as structs, outputs go out as
/// structs, and everything ends in order. The base of all kinds.
///
/// **Ownership.** The connection (a SessionPort) holds the session by shared_ptr; so does every
/// Call under way, and the shard that delivers to it. So the session outlives all of its callers,
/// and the port lives at least until finish() is called on it.
///
/// **Threads.** The protocol's threads bring reads, writes and cancellation; the shard's thread
/// brings outcomes and deliveries. Each changes the state under the mutex and then calls pump().
/// Only one thread pumps at a time; it alone uses the port, and checks again before it leaves.
///
/// Invariant: at most one read and one write are under way; finish() is called exactly once, when
/// no write is under way; and the port is never used after it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Lock = SessionPort::Lock;

  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  /// Begins to work on `port`; reads requests if `reads`.
  void open(SessionPort& port, bool reads);

  // Called by the port.

  /// A request has arrived. True: give it to the take() of the session's class. False: the session
  /// is ending; drop the request.
  [[nodiscard]] bool begin_request();
  /// The request was taken or dropped.
  void end_request();
  /// The client has closed its side, or is gone.
  void on_closed();
  void on_written(bool ok);
  void on_cancel();

  /// Takes no more requests, writes the outstanding confirmations, and ends with `status`.
  void end(const Status& status);
  [[nodiscard]] bool is_ending() const {
    const std::lock_guard lock(mutex_);
    return ending();
  }

 protected:
  // Called with the lock held.

  /// Whether another request may be read.
  [[nodiscard]] virtual bool has_room() const = 0;
  [[nodiscard]] virtual bool has_output() const = 0;
  virtual void written(bool /*ok*/) {}
  /// Whether nothing is left that must be confirmed before the session ends.
  [[nodiscard]] virtual bool settled() const = 0;
  /// Starts to give up what the session holds in the broker; false if there is nothing to start.
  /// Called when nothing more will be written, also after the end.
  virtual bool release(Lock& /*lock*/) { return false; }
  [[nodiscard]] virtual bool released() const { return true; }

  /// Like end(), with the lock held and without a pump().
  void set_end(const Status& status);
  /// Nothing can or may be written any more: ends without waiting for the broker.
  void set_broken(const Status& status);
  /// The same, decided by the broker: the write under way is given up.
  void set_cut_off(const Status& status);
  [[nodiscard]] bool ending() const { return end_.has_value(); }
  /// Whether the client is gone, or broke the connection. A client whose connection broke may look
  /// for a moment like one that closed its side.
  [[nodiscard]] bool is_broken() const;
  /// Whether the client ended or broke the session, and not the broker.
  [[nodiscard]] bool ended_by_client() const;

  /// Does everything that can be done now. Called without the lock, after every change.
  void pump();

  // mutable, because const functions lock it, too.
  mutable std::mutex mutex_;

 private:
  bool step(Lock& lock);
  bool step_to_end(Lock& lock);

  SessionPort* port_ = nullptr;  // Never used after finished_ is set.
  bool pumping_ = false;
  bool reads_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool cancel_due_ = false;
  bool finished_ = false;
  std::optional<Status> end_;
};

/// The open sessions, so that a shutdown can end them. Thread-safe.
class OpenSessions {
 public:
  /// False if sessions are no longer taken.
  bool add(const std::shared_ptr<Session>& session);
  void remove(const std::shared_ptr<Session>& session);
  /// Takes no more sessions from now on.
  void close();
  /// Ends all sessions with `status`, after their outstanding confirmations.
  void end_all(const Status& status);
  /// Waits until the last session has ended, but not beyond `deadline`.
  void wait_until_empty(std::chrono::system_clock::time_point deadline);

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  bool closed_ = false;
  std::set<std::shared_ptr<Session>> sessions_;
};

/// The end of a session whose client is gone.
inline Error gone() { return {Errc::cancelled, {}}; }

}  // namespace baton
