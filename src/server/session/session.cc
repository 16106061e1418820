#include "server/session/session.h"

#include <utility>
#include <vector>

#include "base/assert.h"

namespace baton {

void Session::open(SessionPort& port, bool reads) {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(port_ == nullptr);
    port_ = &port;
    reads_ = reads;
  }
  pump();
}

bool Session::begin_request() {
  const std::lock_guard lock(mutex_);
  // reading_ stays set, so no other request can overtake this one.
  BATON_ASSERT(reading_);
  return !broken_ && !end_.has_value();
}

void Session::end_request() {
  {
    const std::lock_guard lock(mutex_);
    reading_ = false;
  }
  pump();
}

void Session::on_closed() {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(reading_);
    reading_ = false;
    reads_ = false;
    set_end({});
  }
  pump();
}

void Session::on_written(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    BATON_ASSERT(writing_);
    writing_ = false;
    written(ok);
    if (!ok) set_broken(gone());
  }
  pump();
}

void Session::on_cancel() {
  {
    const std::lock_guard lock(mutex_);
    set_broken(gone());
  }
  pump();
}

void Session::end(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    set_end(status);
  }
  pump();
}

void Session::set_end(const Status& status) {
  if (!end_.has_value()) end_ = status;
}

void Session::set_broken(const Status& status) {
  // A client that has closed its side in order still gets a later error.
  if (!end_.has_value() || end_->has_value()) end_ = status;
  broken_ = true;
}

void Session::set_cut_off(const Status& status) {
  set_broken(status);
  cancel_due_ = true;
}

bool Session::is_broken() const {
  return broken_ || (port_ != nullptr && !finished_ && port_->is_cancelled());
}

bool Session::ended_by_client() const {
  return end_.has_value() && (end_->has_value() || end_->error().code == Errc::cancelled);
}

void Session::pump() {
  Lock lock(mutex_);
  // The pumping thread checks again before it leaves, so it sees what the caller has changed.
  if (pumping_ || port_ == nullptr) return;
  pumping_ = true;
  while (step(lock)) {
  }
  pumping_ = false;
}

bool Session::step(Lock& lock) {
  if (finished_) return release(lock);
  if (!writing_ && !broken_ && has_output()) {
    writing_ = true;
    port_->write(lock);
    return true;
  }
  if (broken_ || (end_.has_value() && settled())) return step_to_end(lock);
  if (reads_ && !reading_ && !end_.has_value() && has_room()) {
    reading_ = true;
    lock.unlock();
    port_->read();
    lock.lock();
    return true;
  }
  return false;
}

bool Session::step_to_end(Lock& lock) {
  if (writing_) {
    if (!std::exchange(cancel_due_, false)) return false;
    lock.unlock();
    port_->cancel();
    lock.lock();
    return true;
  }
  if (release(lock)) return true;
  // A client that is still connected learns of the end only when everything is given up.
  if (!broken_ && !released()) return false;
  finished_ = true;
  const Status status = end_.value_or(Status{});
  SessionPort* const port = port_;
  lock.unlock();
  port->finish(status);
  lock.lock();
  return true;
}

bool OpenSessions::add(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  return sessions_.insert(session).second;
}

void OpenSessions::remove(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session);
  if (sessions_.empty()) empty_.notify_all();
}

void OpenSessions::wait_until_empty(std::chrono::system_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  empty_.wait_until(lock, deadline, [this] { return sessions_.empty(); });
}

void OpenSessions::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void OpenSessions::end_all(const Status& status) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    sessions.assign(sessions_.begin(), sessions_.end());
  }
  for (const auto& session : sessions) session->end(status);
}

}  // namespace baton
