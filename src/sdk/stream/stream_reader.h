#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <baton/stream_handle.h>
#include <baton/v1/streams.grpc.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include "sdk/base/backoff.h"
#include "sdk/stream/record_codec.h"

namespace baton::client {

/// One Read call after the other, each starting where the one before it ended. next() is for one
/// thread; only `context_` and `closed_` are shared with close(), under the mutex.
struct StreamReader::State {
  State(ConnectionPointer connection, std::string stream, ReadOptions options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;

  Result<std::optional<std::vector<Record>>> next();
  void close();
  [[nodiscard]] Offset position() const { return position_.load(); }

 private:
  /// What the end of a call means.
  enum class Ending : std::uint8_t { over, again };

  bool open();
  /// Records, perhaps none; nullopt at the end.
  Result<std::optional<std::vector<Record>>> read_once();
  Result<std::vector<Record>> take(const v1::ReadResponse& response);
  Result<Ending> end_call();
  Result<Ending> retry(const Error& error);
  [[nodiscard]] bool has_enough() const;

  const ConnectionPointer connection_;
  const std::string stream_;
  ReadOptions options_;
  std::atomic<Offset> position_ = kNoOffset;
  ReadFloor floor_;
  Offset end_offset_ = kNoOffset;  // Of the partition, as the last response saw it.
  std::uint64_t delivered_ = 0;
  bool progress_ = false;  // Since the call was opened.
  std::optional<Error> failed_;
  Backoff backoff_;
  std::optional<std::chrono::steady_clock::time_point> down_since_;
  std::unique_ptr<grpc::ClientReader<v1::ReadResponse>> call_;

  std::mutex mutex_;
  std::condition_variable closing_;
  std::unique_ptr<grpc::ClientContext> context_;  // Under mutex_.
  bool closed_ = false;                           // Under mutex_.
};

}  // namespace baton::client
