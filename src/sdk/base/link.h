#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <baton/connection.h>
#include <baton/result.h>
#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include "base/assert.h"
#include "sdk/base/backoff.h"
#include "sdk/base/errors.h"

namespace baton::client {

using SteadyClock = std::chrono::steady_clock;

/// A bidirectional stream that reconnects: opens a call, writes one frame at a time, reads, and
/// when the call ends opens the next one after a backoff. The derived class decides what is sent.
///
/// The derived class keeps its state under `mutex_` too. It calls shutdown() in its destructor,
/// after which no reaction runs any more. The link has no thread: reactions run on gRPC's.
///
/// Invariant: at most one call, and at most one write of it, at a time. A call exists until
/// its OnDone has returned, so `call_ == nullptr` under the lock means that no reaction is
/// running.
template <class Request, class Response>
class Link {
 public:
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  Link(Link&&) = delete;
  Link& operator=(Link&&) = delete;

 protected:
  using Lock = std::unique_lock<std::mutex>;
  using Reactor = grpc::ClientBidiReactor<Request, Response>;

  Link(ConnectionOptions connection, bool reconnect)
      : connection_(std::move(connection)),
        reconnect_(reconnect),
        backoff_(connection_.reconnect_min, connection_.reconnect_max, std::random_device{}()) {}
  virtual ~Link() { BATON_ASSERT(is_quiet() && alarms_pending_ == 0); }

  /// Starts the call: stub->async()->Method(context, reactor).
  virtual void begin_call(grpc::ClientContext* context, Reactor* reactor) = 0;
  /// Under the lock. Returns whether a call is needed now.
  [[nodiscard]] virtual bool wants_session() const = 0;
  /// Under the lock. A new call is open, and nothing has been sent on it.
  virtual void session_opened() {}
  /// Under the lock. The next frame, kept alive and unchanged until frame_written(); or nullptr.
  virtual const Request* next_frame() = 0;
  virtual void frame_written() {}
  /// Without the lock, called for one response at a time.
  virtual void received(Response& response) = 0;
  /// Without the lock, after the last received() of the call. `over`: no other call follows.
  virtual void disconnected(const Error& error, bool over) = 0;

  /// Opens a call if one is wanted and there is none, and writes if there is something to write.
  void pump(Lock& lock) {
    if (call_ == nullptr) {
      if (over_ || closing_ || ending_ || retry_pending_ || !wants_session()) return;
      open_session(lock);
    }
    write_next(lock);
  }

  /// Runs `then` under the lock at `when`, unless the link is shut down before.
  void run_at(SteadyClock::time_point when, std::unique_ptr<grpc::Alarm>& alarm,
              std::function<void(Lock&)> then) {
    ++alarms_pending_;
    // A new alarm each time: the old one's callback may still be running.
    alarm = std::make_unique<grpc::Alarm>();
    alarm->Set(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::microseconds>(when - SteadyClock::now()),
               [this, run = std::move(then)](bool fired) {
                 Lock lock(mutex_);
                 if (fired && !closing_) run(lock);
                 --alarms_pending_;
                 changed_.notify_all();
               });
  }

  /// Ends the stream and waits until no reaction runs. Until `deadline` the broker may end it in
  /// its own time (`gracefully`); then it is cancelled. Idempotent.
  void shutdown(Lock& lock, bool gracefully, SteadyClock::time_point deadline) {
    closing_ = true;
    if (retry_alarm_) retry_alarm_->Cancel();
    cancel_alarms();
    if (gracefully && call_ != nullptr) {
      half_close_ = true;
      pump(lock);
      changed_.wait_until(lock, deadline, [&] { return is_quiet(); });
    }
    // Under the lock, so that the call does not end meanwhile; gRPC runs no reaction here.
    if (call_ != nullptr) call_->context.TryCancel();
    changed_.wait(lock, [&] { return is_quiet() && alarms_pending_ == 0; });
  }
  /// The Error of everything that is still unanswered at shutdown.
  static Error closed_error() {
    return Error{Errc::unavailable, "it was closed before the broker answered"};
  }
  /// Under the lock: cancels the derived class's own alarms.
  virtual void cancel_alarms() {}

  /// The broker answered: resets the backoff.
  void mark_alive(Lock& /*lock*/) {
    if (alive_) return;
    alive_ = true;
    backoff_.reset();
    down_since_.reset();
    if (sessions_ > 1) ++reconnects_;
  }
  /// Ends the call as broken: the broker violated the protocol, or `why`.
  void break_session(Lock& /*lock*/, std::optional<Error> why = std::nullopt) {
    if (call_ == nullptr) return;
    if (why && !broken_why_) broken_why_ = std::move(why);
    call_->context.TryCancel();
  }

  const ConnectionOptions connection_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // Any change that a thread may wait for.
  // All below under mutex_.
  std::optional<Error> over_;  // Why there will be no other call.
  bool closing_ = false;
  bool writing_ = false;
  std::uint64_t reconnects_ = 0;

 private:
  // One call.
  class Call final : public Reactor {
   public:
    explicit Call(Link& link) : link_(link) {}

    void begin() {
      link_.begin_call(&context, this);
      this->StartRead(&response_);
      // Writes come from other threads than the reactions.
      this->AddHold();
      this->StartCall();
    }
    void OnReadDone(bool ok) override {
      if (!ok) {
        link_.reading_ended();
        return;
      }
      link_.received(response_);
      this->StartRead(&response_);
    }
    void OnWriteDone(bool ok) override { link_.writing_ended(ok); }
    void OnWritesDoneDone(bool /*ok*/) override { link_.writing_ended(false); }
    void OnDone(const grpc::Status& status) override {
      link_.call_done(status);  // Deletes this.
    }

    grpc::ClientContext context;

   private:
    Link& link_;
    Response response_;
  };

  [[nodiscard]] bool is_quiet() const { return call_ == nullptr && !ending_; }

  void open_session(Lock& lock) {
    auto* const call = new Call(*this);  // NOLINT: until call_done().
    call_ = call;
    ++sessions_;
    alive_ = false;
    reading_ = true;
    // Counts as a write until the call has begun, so that nothing else writes and the hold stays.
    writing_ = true;
    writable_ = false;
    lock.unlock();
    call->begin();
    lock.lock();
    session_opened();
    writable_ = reading_;
    end_write(lock);
  }

  void write_next(Lock& lock) {
    if (call_ == nullptr || !writable_ || writing_) return;
    const Request* const frame = next_frame();
    if (frame == nullptr && !half_close_) return;
    writing_ = true;
    Call* const call = call_;  // writing_ keeps it alive.
    lock.unlock();
    if (frame != nullptr) {
      call->StartWrite(frame);
    } else {
      call->StartWritesDone();
    }
    lock.lock();
  }

  void writing_ended(bool ok) {
    Lock lock(mutex_);
    if (!ok) writable_ = false;
    frame_written();
    end_write(lock);
    write_next(lock);
  }

  void end_write(Lock& lock) {
    writing_ = false;
    if (reading_) return;
    Call* const call = call_;
    lock.unlock();
    call->RemoveHold();
    lock.lock();
  }

  void reading_ended() {
    Lock lock(mutex_);
    reading_ = false;
    writable_ = false;
    Call* const call = call_;
    if (writing_) return;  // Its end removes the hold.
    lock.unlock();
    call->RemoveHold();
  }

  void call_done(const grpc::Status& status) {
    Lock lock(mutex_);
    const auto why = std::exchange(broken_why_, std::nullopt);
    const Error error =
        closing_ ? closed_error() : why.value_or(from_grpc(status, connection_.address));
    const auto now = SteadyClock::now();
    if (!down_since_) down_since_ = now;
    const bool gave_up =
        connection_.give_up_after.count() > 0 && now - *down_since_ >= connection_.give_up_after;
    if (!closing_ && (gave_up || !reconnect_ || !is_worth_retrying(status))) over_ = error;
    const bool over = closing_ || over_.has_value();
    lock.unlock();
    disconnected(error, over);
    lock.lock();
    Call* const call = std::exchange(call_, nullptr);
    ending_ = true;
    lock.unlock();
    // Before the link may be destroyed: the context shares the channel, and a channel must not be
    // destroyed on one of gRPC's own threads.
    delete call;  // NOLINT
    lock.lock();
    ending_ = false;
    if (!over_ && !closing_) {
      if (wants_session()) {
        retry_later();
      } else {
        down_since_.reset();
      }
    }
    changed_.notify_all();
  }

  void retry_later() {
    retry_pending_ = true;
    const auto now = SteadyClock::now();
    auto at = now + backoff_.next();
    if (connection_.give_up_after.count() > 0) {
      at = std::min(at, down_since_.value_or(now) + connection_.give_up_after);
    }
    run_at(at, retry_alarm_, [this](Lock& lock) {
      retry_pending_ = false;
      pump(lock);
    });
  }

  const bool reconnect_;
  Call* call_ = nullptr;
  bool ending_ = false;  // A call that is no longer call_ is being deleted.
  bool reading_ = false;
  bool writable_ = false;
  bool half_close_ = false;
  bool alive_ = false;
  bool retry_pending_ = false;
  std::uint64_t sessions_ = 0;
  int alarms_pending_ = 0;
  std::optional<Error> broken_why_;
  std::optional<SteadyClock::time_point> down_since_;
  Backoff backoff_;
  std::unique_ptr<grpc::Alarm> retry_alarm_;
};

}  // namespace baton::client
