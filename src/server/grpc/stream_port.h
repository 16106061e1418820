#pragma once

#include <memory>
#include <utility>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "server/grpc/status.h"
#include "server/grpc/stream_call.h"
#include "server/session/running_operation.h"

namespace baton {

/// The gRPC side of a StreamCall. gRPC owns it until OnDone, where it deletes itself.
///
/// Requests and responses are raw bytes: the most frequent responses are encoded by hand
/// (queue_wire.h), and the call parses requests into a message that it reuses.
template <class Reactor>
class StreamReactor : public Reactor, public StreamPort {
 public:
  StreamReactor(grpc::CallbackServerContext* context, std::shared_ptr<ServerState> state,
                Operation operation, std::shared_ptr<StreamCall> call)
      : context_(context),
        call_(std::move(call)),
        running_(std::move(state), operation, call_->session()) {}

  void write(grpc::ByteBuffer frame) override {
    // Kept until OnWriteDone, as gRPC requires.
    frame_.Swap(&frame);
    Reactor::StartWrite(&frame_);
  }
  void finish(const grpc::Status& status) override {
    add_retry_hint(*context_, status);
    running_.ended(static_cast<std::size_t>(status.error_code()));
    // The reactor may be gone before this returns.
    Reactor::Finish(status);
  }

  void cancel() override { context_->TryCancel(); }
  [[nodiscard]] bool is_cancelled() const override { return context_->IsCancelled(); }

  void OnWriteDone(bool ok) override { call_->on_written(ok); }
  void OnCancel() override { call_->on_cancel(); }
  void OnDone() override { delete this; }

 protected:
  StreamCall& call() { return *call_; }

 private:
  grpc::CallbackServerContext* context_;
  std::shared_ptr<StreamCall> call_;
  RunningSession running_;
  grpc::ByteBuffer frame_;
};

/// A stream that the client only reads.
class WriteReactor final : public StreamReactor<grpc::ServerWriteReactor<grpc::ByteBuffer>> {
 public:
  using StreamReactor::StreamReactor;
  void read() override {}
};

/// A stream in both directions.
class BidiReactor final
    : public StreamReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  using StreamReactor::StreamReactor;
  void read() override { StartRead(&request_); }
  void OnReadDone(bool ok) override { call().on_read(ok ? &request_ : nullptr); }

 private:
  grpc::ByteBuffer request_;
};

}  // namespace baton
