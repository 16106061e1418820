#include "worker/etcd/etcd_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

// How often the silence is measured.
constexpr std::chrono::milliseconds kTick{250};

}  // namespace

EtcdWatch::EtcdWatch(std::shared_ptr<EtcdLink> link, const EtcdLink::Member& member,
                     EtcdSnapshot snapshot, WatchCallback callback)
    : link_(std::move(link)),
      member_(member),
      snapshot_(std::move(snapshot)),
      callback_(std::move(callback)),
      thread_([this] { run(); }) {}

EtcdWatch::~EtcdWatch() {
  stopping_ = true;
  context_.TryCancel();
  thread_.join();
}

void EtcdWatch::run() {
  show_snapshot();
  std::string over = follow();
  // An end of our making must not wait for etcd's; an end of etcd's says why.
  if (!over.empty()) context_.TryCancel();
  const grpc::Status status = finish();
  if (stopping_) return;
  // A member that cannot feed a watch is not worth asking either.
  link_->avoid(member_);
  if (over.empty()) over = etcd_error(status, member_.address).text;
  callback_({.kind = WatchEvent::Kind::broken, .entry = {.value = std::move(over)}});
}

void EtcdWatch::show_snapshot() {
  for (mvccpb::KeyValue& entry : *snapshot_.found.mutable_kvs()) {
    if (stopping_) return;
    callback_({.kind = WatchEvent::Kind::put,
               .entry = {.key = entry.key().substr(snapshot_.keys.size()),
                         .value = std::move(*entry.mutable_value()),
                         .revision = static_cast<KvRevision>(entry.mod_revision())}});
  }
  if (!stopping_) callback_({.kind = WatchEvent::Kind::snapshot_end});
  snapshot_.found.clear_kvs();
}

void* EtcdWatch::tag(Step step) {
  ++under_way_;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(step));  // NOLINT
}

void EtcdWatch::read() { stream_->Read(&response_, tag(Step::read)); }

std::string EtcdWatch::follow() {
  // A member that lost its cluster ends the stream, instead of keeping it silent.
  context_.AddMetadata("hasleader", "true");
  link_->prepare(context_);
  heard_at_ = asked_at_ = Clock::now();
  stream_ = member_.watch->PrepareAsyncWatch(&context_, &queue_);
  stream_->StartCall(tag(Step::start));
  while (true) {
    void* answered = nullptr;
    bool ok = false;
    std::string over;
    switch (queue_.AsyncNext(&answered, &ok, std::chrono::system_clock::now() + kTick)) {
      case grpc::CompletionQueue::TIMEOUT: over = check_silence(); break;
      case grpc::CompletionQueue::GOT_EVENT:
        --under_way_;
        if (!ok || stopping_) return {};  // finish() knows why.
        over = take(static_cast<Step>(reinterpret_cast<std::uintptr_t>(answered)));  // NOLINT
        break;
      case grpc::CompletionQueue::SHUTDOWN: return {};
    }
    if (!over.empty()) return over;
  }
}

std::string EtcdWatch::take(Step step) {
  switch (step) {
    case Step::start: {
      etcdserverpb::WatchRequest request;
      auto& create = *request.mutable_create_request();
      create.set_key(snapshot_.key);
      create.set_range_end(snapshot_.range_end);
      create.set_start_revision(snapshot_.found.header().revision() + 1);
      send(request);
      read();
      return {};
    }
    case Step::read: {
      std::string over = take_response();
      if (over.empty()) over = check_silence();
      if (over.empty()) read();
      return over;
    }
    case Step::write: is_writing_ = false; return {};
    case Step::finish: return {};
  }
  return {};
}

std::string EtcdWatch::take_response() {
  if (response_.canceled()) {
    if (response_.compact_revision() != 0) {
      return fmt::format("etcd has compacted its history up to revision {}",
                         response_.compact_revision());
    }
    return fmt::format("etcd ended it: {}", response_.cancel_reason());
  }
  for (mvccpb::Event& event : *response_.mutable_events()) {
    if (stopping_) return {};
    mvccpb::KeyValue& entry = *event.mutable_kv();
    WatchEvent seen{.kind = WatchEvent::Kind::removed,
                    .entry = {.key = entry.key().substr(snapshot_.keys.size()),
                              .revision = static_cast<KvRevision>(entry.mod_revision())}};
    if (event.type() == mvccpb::Event::PUT) {
      seen.kind = WatchEvent::Kind::put;
      seen.entry.value = std::move(*entry.mutable_value());
    }
    callback_(std::move(seen));
  }
  // Now, and not before the calls: a slow one is not etcd's silence.
  heard_at_ = Clock::now();
  return {};
}

std::string EtcdWatch::check_silence() {
  const auto now = Clock::now();
  if (now - heard_at_ >= limits::kWatchSilence) {
    return fmt::format("no word from etcd at {} for {} ms", member_.address,
                       limits::kWatchSilence.count());
  }
  if (now - asked_at_ >= limits::kWatchHeartbeat) ask_for_progress();
  return {};
}

void EtcdWatch::ask_for_progress() {
  if (is_writing_) return;
  asked_at_ = Clock::now();
  link_->count_request();
  etcdserverpb::WatchRequest request;
  request.mutable_progress_request();
  send(request);
}

void EtcdWatch::send(const etcdserverpb::WatchRequest& request) {
  is_writing_ = true;
  stream_->Write(request, tag(Step::write));
}

grpc::Status EtcdWatch::finish() {
  grpc::Status status;
  void* answered = nullptr;
  bool ok = false;
  stream_->Finish(&status, tag(Step::finish));
  const auto patience = std::chrono::system_clock::now() + kTick;
  while (under_way_ > 0 &&
         queue_.AsyncNext(&answered, &ok, patience) == grpc::CompletionQueue::GOT_EVENT) {
    --under_way_;
  }
  context_.TryCancel();
  while (under_way_ > 0 && queue_.Next(&answered, &ok)) --under_way_;
  queue_.Shutdown();
  while (queue_.Next(&answered, &ok)) {
  }
  return status;
}

}  // namespace baton::coord
