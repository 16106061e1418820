#include "sdk/kv/kv_watch_link.h"

#include <utility>

#include <fmt/format.h>

#include "sdk/base/connection.h"
#include "sdk/kv/kv_convert.h"

namespace baton::client {
namespace {

KvWatchEvent::Kind kind_of(v1::WatchKeysResponse::Change::Kind kind) {
  switch (kind) {
    case v1::WatchKeysResponse::Change::KIND_REMOVED: return KvWatchEvent::Kind::removed;
    case v1::WatchKeysResponse::Change::KIND_EXPIRED: return KvWatchEvent::Kind::expired;
    default: return KvWatchEvent::Kind::put;
  }
}

KvWatchEvent event_of(KvWatchEvent::Kind kind) {
  KvWatchEvent event;
  event.kind = kind;
  return event;
}

}  // namespace

KvWatchLink::KvWatchLink(const Connection& connection, std::string bucket, KvWatchOptions options,
                         KvWatchCallback callback)
    : LeasedLink(connection.options, options.reconnect),
      bucket_(std::move(bucket)),
      options_(std::move(options)),
      callback_(std::move(callback)),
      stub_(v1::KvService::NewStub(connection.channel)),
      complete_to_(options_.resume_after) {}

KvWatchLink::~KvWatchLink() { close(std::chrono::seconds{1}); }

void KvWatchLink::start() {
  Lock lock(mutex_);
  pump(lock);
}

void KvWatchLink::begin_call(grpc::ClientContext* context, Reactor* reactor) {
  stub_->async()->WatchKeys(context, reactor);
}

void KvWatchLink::session_opened() {
  start_sent_ = false;
  session_live_ = false;
  if (!options_.session.empty()) begin_lease();
}

void KvWatchLink::fill_start(v1::WatchKeysRequest::Start& start) const {
  start.set_bucket(bucket_);
  if (!options_.key.empty()) {
    start.set_key(options_.key);
  } else {
    start.set_prefix(options_.prefix);
  }
  if (complete_to_) start.set_resume_after(*complete_to_);
  start.set_session(options_.session);
}

const v1::WatchKeysRequest* KvWatchLink::next_frame() {
  const bool first = !std::exchange(start_sent_, true);
  frame_.Clear();
  const bool beats = !options_.session.empty() && fill_heartbeat(frame_);
  if (!first && !goodbye_due_ && !beats) return nullptr;
  if (first) fill_start(*frame_.mutable_start());
  frame_.set_goodbye(std::exchange(goodbye_due_, false));
  return &frame_;
}

void KvWatchLink::tell(KvWatchEvent event) {
  {
    const Lock lock(mutex_);
    if (closed_) return;
  }
  event.in_snapshot = in_snapshot_;
  shown_ = true;
  callback_(event);
}

void KvWatchLink::set_revision(std::uint64_t revision) {
  const Lock lock(mutex_);
  complete_to_ = revision;
}

void KvWatchLink::received(v1::WatchKeysResponse& response) {
  {
    Lock lock(mutex_);
    mark_alive(lock);
    take_heartbeat(response);
    if (lease_has_ended()) return give_up_session(lock);
    // An answered heartbeat alone does not mean that the watch was accepted.
    session_live_ = session_live_ || response.has_started();
    started_ = started_ || response.has_started();
    changed_.notify_all();
  }
  told_of_loss_ = false;
  tell_snapshot(response);
  tell_changes(response);
  if (response.complete_to() != 0 && !in_snapshot_) set_revision(response.complete_to());
}

void KvWatchLink::tell_snapshot(v1::WatchKeysResponse& response) {
  const bool from_scratch = response.has_started() && !response.started().resumed();
  if (response.has_compacted() || (from_scratch && shown_)) {
    {
      // A snapshot that broke before its end has to begin anew.
      const Lock lock(mutex_);
      complete_to_.reset();
    }
    in_snapshot_ = true;
    tell(event_of(KvWatchEvent::Kind::compacted));
  }
  in_snapshot_ = in_snapshot_ || from_scratch;
  for (v1::KvEntry& entry : *response.mutable_snapshot()) {
    KvWatchEvent event;
    event.entry = take(entry);
    event.revision = event.entry.revision;
    tell(std::move(event));
  }
  if (!response.has_snapshot_end()) return;
  in_snapshot_ = false;
  set_revision(response.snapshot_end().revision());
  KvWatchEvent event = event_of(KvWatchEvent::Kind::snapshot_end);
  event.revision = response.snapshot_end().revision();
  tell(std::move(event));
}

void KvWatchLink::tell_changes(v1::WatchKeysResponse& response) {
  for (v1::WatchKeysResponse::Change& change : *response.mutable_changes()) {
    KvWatchEvent event = event_of(kind_of(change.kind()));
    event.entry = take(*change.mutable_entry());
    event.revision = event.entry.revision;
    // A watch that resumes after this revision misses nothing: all before it has been reported.
    if (!in_snapshot_) set_revision(event.revision);
    tell(std::move(event));
  }
  for (const v1::WatchKeysResponse::SessionLost& lost : response.sessions_lost()) {
    KvWatchEvent event = event_of(KvWatchEvent::Kind::session_lost);
    event.entry.key = lost.key();
    event.entry.revision = lost.revision();
    event.revision = lost.revision();
    tell(std::move(event));
  }
}

void KvWatchLink::disconnected(const Error& error, bool over) {
  {
    Lock lock(mutex_);
    close_lease();
    session_live_ = false;
    if (closed_) return;
  }
  if (!over && std::exchange(told_of_loss_, true)) return;
  KvWatchEvent event =
      event_of(over ? KvWatchEvent::Kind::ended : KvWatchEvent::Kind::disconnected);
  event.error = error;
  const bool shown = shown_;
  tell(std::move(event));
  shown_ = shown;
}

Status KvWatchLink::wait_until_started(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return started_ || over_ || closed_; });
  if (over_) return *over_;
  if (started_) return {};
  if (closed_) return Error{Errc::cancelled, "the watch is closed"};
  return Error{Errc::deadline_exceeded,
               fmt::format("the broker at {} did not take the watch within {} ms",
                           connection_.address, timeout.count())};
}

std::uint64_t KvWatchLink::revision() const {
  const Lock lock(mutex_);
  return complete_to_.value_or(0);
}

void KvWatchLink::close(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  // A broker that has not even accepted the watch need not be told of its end.
  goodbye_due_ = session_live_;
  shutdown(lock, session_live_, SteadyClock::now() + timeout);
}

void KvWatchLink::abandon() {
  Lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  shutdown(lock, false, SteadyClock::now());
}

}  // namespace baton::client
