#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <etcd/rpc.grpc.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include "worker/etcd/etcd_link.h"
#include "worker/stores/kv_store.h"

namespace baton::coord {

/// What a watch of etcd starts from.
struct EtcdSnapshot {
  std::string keys{};  // What every key of the bucket begins with: "<bucket>/".
  std::string key{};   // The range that is watched.
  std::string range_end{};
  etcdserverpb::RangeResponse found{};
};

/// Shows a snapshot, then every change after its revision: one stream to one member. Asks for a
/// sign of life every second, and ends as `broken` after three seconds without any.
///
/// Owns a thread, which makes the calls.
class EtcdWatch final : public Watch {
 public:
  EtcdWatch(std::shared_ptr<EtcdLink> link, const EtcdLink::Member& member, EtcdSnapshot snapshot,
            WatchCallback callback);
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;
  ~EtcdWatch() override;

 private:
  using Clock = std::chrono::steady_clock;
  // What the completion queue answers with.
  enum class Step : std::uint8_t { start, read, write, finish };

  void run();
  void show_snapshot();
  /// The stream's life, from start to end; answers why it is over.
  std::string follow();
  /// Each answers why the watch is over; empty: it goes on.
  std::string take(Step step);
  std::string take_response();
  std::string check_silence();
  void send(const etcdserverpb::WatchRequest& request);
  void ask_for_progress();
  /// Ends the stream and waits for what is still under way.
  grpc::Status finish();

  void* tag(Step step);
  void read();

  std::shared_ptr<EtcdLink> link_;
  const EtcdLink::Member& member_;
  EtcdSnapshot snapshot_;
  WatchCallback callback_;
  std::atomic<bool> stopping_ = false;

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<
      grpc::ClientAsyncReaderWriter<etcdserverpb::WatchRequest, etcdserverpb::WatchResponse>>
      stream_;
  etcdserverpb::WatchResponse response_;
  int under_way_ = 0;  // Steps that the queue has yet to answer.
  bool is_writing_ = false;
  Clock::time_point heard_at_;
  Clock::time_point asked_at_;
  std::thread thread_;
};

}  // namespace baton::coord
