#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <baton/bucket_handle.h>
#include <baton/v1/kv.grpc.pb.h>
#include <grpcpp/channel.h>

#include "sdk/base/leased_link.h"

namespace baton::client {

/// One Watch call after the other, each resuming after the last revision that was complete.
///
/// The callback runs on the thread that reads: while it runs nothing more is read, and gRPC makes
/// the broker wait.
///
/// A watch that names a session has a lease: other watches are told that the session is lost only
/// when this side has known for a second that it may be.
class KvWatchLink final : LeasedLink<v1::WatchKeysRequest, v1::WatchKeysResponse> {
 public:
  KvWatchLink(const Connection& connection, std::string bucket, KvWatchOptions options,
              KvWatchCallback callback);
  ~KvWatchLink() override;
  KvWatchLink(const KvWatchLink&) = delete;
  KvWatchLink& operator=(const KvWatchLink&) = delete;
  KvWatchLink(KvWatchLink&&) = delete;
  KvWatchLink& operator=(KvWatchLink&&) = delete;

  void start();
  Status wait_until_started(std::chrono::milliseconds timeout);
  [[nodiscard]] std::uint64_t revision() const;
  void close(std::chrono::milliseconds timeout);
  void abandon();

 private:
  void begin_call(grpc::ClientContext* context, Reactor* reactor) override;
  [[nodiscard]] bool wants_session() const override { return true; }
  void session_opened() override;
  const v1::WatchKeysRequest* next_frame() override;
  void received(v1::WatchKeysResponse& response) override;
  void disconnected(const Error& error, bool over) override;

  void fill_start(v1::WatchKeysRequest::Start& start) const;
  // Without the lock, on the thread that reads.
  void tell(KvWatchEvent event);
  void tell_snapshot(v1::WatchKeysResponse& response);
  void tell_changes(v1::WatchKeysResponse& response);
  void set_revision(std::uint64_t revision);

  const std::string bucket_;
  const KvWatchOptions options_;
  const KvWatchCallback callback_;
  std::unique_ptr<v1::KvService::Stub> stub_;
  v1::WatchKeysRequest frame_;

  // Used only by the thread that reads.
  bool in_snapshot_ = false;
  bool shown_ = false;  // Events were reported that a new snapshot would replace.
  bool told_of_loss_ = false;

  // Under mutex_.
  std::optional<std::uint64_t> complete_to_;  // What to resume after.
  bool start_sent_ = false;
  bool started_ = false;       // The broker has accepted the watch at least once.
  bool session_live_ = false;  // The broker has accepted the watch on this session.
  bool closed_ = false;
  bool goodbye_due_ = false;
};

}  // namespace baton::client
