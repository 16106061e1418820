#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"

namespace baton {

/// What a Stream may do to its gRPC call. Owned by gRPC, gone some time after finish().
class StreamPort {
 public:
  StreamPort() = default;
  StreamPort(const StreamPort&) = delete;
  StreamPort& operator=(const StreamPort&) = delete;
  virtual ~StreamPort() = default;

  virtual void read() = 0;
  virtual void write(grpc::ByteBuffer frame) = 0;
  virtual void finish(const grpc::Status& status) = 0;
  /// Gives up a write that may never end: the client is gone without a word.
  virtual void cancel() {}
  /// The client cancelled the call, or is gone. May be known before on_cancel() says so.
  [[nodiscard]] virtual bool is_cancelled() const { return false; }
};

/// One open stream: what all three kinds have in common.
///
/// **Ownership.** The gRPC reactor (a StreamPort) deletes itself in OnDone and holds the stream by
/// shared_ptr; so does every Call under way, and the shard that delivers to it. Thus the stream
/// outlives whoever may still call it, and the reactor lives at least until finish() was called on
/// it.
///
/// **Threads.** gRPC's threads bring reads, writes and cancellation, the shard's thread brings
/// outcomes and deliveries. Each changes the state under the mutex and then calls pump(). Only one
/// thread pumps at a time; it alone touches the port, with the mutex released, and looks again
/// before it leaves.
///
/// Invariant: at most one read and one write are under way, finish() is called exactly once, when
/// no write is under way, and the port is never touched after it.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// Begins work on `port`; reads requests when `reads`.
  void open(StreamPort& port, bool reads);

  /// From gRPC. Null: the client has closed its side, or is gone.
  void on_read(grpc::ByteBuffer* request);
  void on_written(bool ok);
  void on_cancel();

  /// Takes no more requests, writes what is still to be confirmed, and ends with `status`.
  void end(const grpc::Status& status);
  [[nodiscard]] bool is_ending() const {
    const std::lock_guard lock(mutex_);
    return ending();
  }

 protected:
  using Lock = std::unique_lock<std::mutex>;

  /// Takes a request, without the lock. Not called again before it has returned.
  virtual void take(grpc::ByteBuffer& request) = 0;

  // The rest is called with the lock held.

  /// Another request may be read.
  [[nodiscard]] virtual bool has_room() const = 0;
  [[nodiscard]] virtual bool has_output() const = 0;
  /// The next frame. May release the lock to encode it.
  virtual std::string take_output(Lock& lock) = 0;
  virtual void written(bool /*ok*/) {}
  /// Nothing is left that has to be confirmed before the stream ends.
  [[nodiscard]] virtual bool settled() const = 0;
  /// Starts to give up what the stream holds in the broker; false when there is nothing to start.
  /// Called when nothing more will be written, also after the end.
  virtual bool release(Lock& /*lock*/) { return false; }
  [[nodiscard]] virtual bool released() const { return true; }

  /// As end(), with the lock held and without a pump().
  void set_end(const grpc::Status& status);
  /// Nothing can or may be written any more: ends without waiting for the broker.
  void set_broken(const grpc::Status& status);
  /// The same, by our own decision: the write under way is given up.
  void set_cut_off(const grpc::Status& status);
  [[nodiscard]] bool ending() const { return end_.has_value(); }
  /// Whether the client is gone, or broke the call off. One whose connection broke may look for a
  /// moment like one that closed its side.
  [[nodiscard]] bool is_broken() const;
  /// Whether it was the client who ended it, or broke it: not the broker.
  [[nodiscard]] bool ended_by_client() const;

  /// Does whatever can be done now. Called without the lock, after every change.
  void pump();

  // mutable: const questions are asked under it, too.
  mutable std::mutex mutex_;

 private:
  bool step(Lock& lock);
  bool step_to_end(Lock& lock);

  StreamPort* port_ = nullptr;  // Never used after finished_ is set.
  bool pumping_ = false;
  bool reads_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool broken_ = false;
  bool cancel_due_ = false;
  bool finished_ = false;
  std::optional<grpc::Status> end_;
};

/// The streams that are open, so that a shutdown can end them. Thread-safe.
class OpenStreams {
 public:
  /// False when streams are no longer taken.
  bool add(const std::shared_ptr<Stream>& stream);
  void remove(const std::shared_ptr<Stream>& stream);
  /// Takes no more streams from now on.
  void close();
  /// Ends all there are with `status`, after what they have to confirm.
  void end_all(const grpc::Status& status);
  /// Waits for the last one to end, but not beyond `deadline`.
  void wait_until_empty(std::chrono::system_clock::time_point deadline);

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  bool closed_ = false;
  std::set<std::shared_ptr<Stream>> streams_;
};

}  // namespace baton
