#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "server/grpc/api_state.h"
#include "server/grpc/status.h"
#include "server/grpc/stream.h"

namespace baton {

/// The gRPC side of a Stream. gRPC owns it until OnDone, where it deletes itself.
///
/// Requests and responses are raw bytes: the hot responses are encoded by hand (queue_wire.h), and
/// the requests are parsed by the stream into a message that it uses again and again.
template <class Reactor>
class StreamReactor : public Reactor, public StreamPort {
 public:
  StreamReactor(grpc::CallbackServerContext* context, std::shared_ptr<ApiState> state,
                Method method, std::shared_ptr<Stream> stream)
      : context_(context), state_(std::move(state)), method_(method), stream_(std::move(stream)) {
    state_->counters.streams_open.fetch_add(1, std::memory_order_relaxed);
    if (!state_->streams.add(stream_)) stream_->end(to_status(shutting_down()));
  }

  void write(grpc::ByteBuffer frame) override {
    // Kept until OnWriteDone, as gRPC asks.
    frame_.Swap(&frame);
    Reactor::StartWrite(&frame_);
  }
  void finish(const grpc::Status& status) override {
    add_retry_hint(*context_, status);
    state_->counters.ended(method_, status.error_code());
    // The reactor may be gone before this returns.
    Reactor::Finish(status);
  }

  void cancel() override { context_->TryCancel(); }
  [[nodiscard]] bool is_cancelled() const override { return context_->IsCancelled(); }

  void OnWriteDone(bool ok) override { stream_->on_written(ok); }
  void OnCancel() override { stream_->on_cancel(); }
  void OnDone() override {
    state_->counters.streams_open.fetch_sub(1, std::memory_order_relaxed);
    state_->streams.remove(stream_);
    delete this;
  }

 protected:
  Stream& stream() { return *stream_; }

 private:
  grpc::CallbackServerContext* context_;
  std::shared_ptr<ApiState> state_;
  Method method_;
  std::shared_ptr<Stream> stream_;
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
  void OnReadDone(bool ok) override { stream().on_read(ok ? &request_ : nullptr); }

 private:
  grpc::ByteBuffer request_;
};

}  // namespace baton
