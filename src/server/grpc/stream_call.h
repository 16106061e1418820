#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "server/session/session.h"

namespace baton {

/// What a StreamCall may do with its gRPC call. Owned by gRPC, destroyed some time after finish().
class StreamPort {
 public:
  StreamPort() = default;
  StreamPort(const StreamPort&) = delete;
  StreamPort& operator=(const StreamPort&) = delete;
  virtual ~StreamPort() = default;

  virtual void read() = 0;
  virtual void write(grpc::ByteBuffer frame) = 0;
  virtual void finish(const grpc::Status& status) = 0;
  virtual void cancel() {}
  [[nodiscard]] virtual bool is_cancelled() const { return false; }
};

/// A streaming call of gRPC: the codec between a Session, which uses structs, and frames of bytes.
/// Has no state except that of the conversion.
///
/// Owned by gRPC's reactor, and so lives at least until the session has called finish() on it.
class StreamCall : public SessionPort {
 public:
  explicit StreamCall(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  /// Begins to work on `port`; reads requests if `reads`.
  void open(StreamPort& port, bool reads);

  // Called by gRPC.
  /// `request` is null if the client has closed its side, or is gone.
  void on_read(grpc::ByteBuffer* request);
  void on_written(bool ok) { session_->on_written(ok); }
  void on_cancel() { session_->on_cancel(); }

  [[nodiscard]] const std::shared_ptr<Session>& session() const { return session_; }

  // Called by the session.
  void read() override { port_->read(); }
  void write(Lock& lock) override;
  void finish(const Status& status) override { port_->finish(to_grpc(status)); }
  void cancel() override { port_->cancel(); }
  [[nodiscard]] bool is_cancelled() const override { return port_->is_cancelled(); }

 protected:
  /// Gives the contents of a request to the session; an error ends the call.
  virtual Status take(grpc::ByteBuffer& /*request*/) { return {}; }
  /// Takes the session's next output, with the lock held, and encodes it, without the lock.
  virtual std::string next_frame(Lock& lock) = 0;
  [[nodiscard]] virtual grpc::Status to_grpc(const Status& status) const;

 private:
  std::shared_ptr<Session> session_;
  StreamPort* port_ = nullptr;
};

}  // namespace baton
