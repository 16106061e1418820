#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <baton/security.h>
#include <etcd/rpc.grpc.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "base/result.h"
#include "worker/stores/deadline.h"
#include "worker/stores/limits.h"

namespace baton::coord {

/// A failed call to etcd, as an Error.
Error etcd_error(const grpc::Status& status, const std::string& address);

/// The members of an etcd cluster, and which of them to ask. Any of them will do: each passes
/// writes, and reads that must not be stale, on to the leader. Shared by a store and its watches;
/// thread-safe.
///
/// A channel per member rather than one that knows them all: gRPC leaves a member only when its
/// connection breaks, and not when it has stopped answering.
class EtcdLink {
 public:
  struct Member {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<etcdserverpb::KV::Stub> kv;
    std::unique_ptr<etcdserverpb::Watch::Stub> watch;
    std::unique_ptr<etcdserverpb::Auth::Stub> auth;
  };

  /// Fails on TLS files that cannot be used.
  static Result<std::shared_ptr<EtcdLink>> make(const std::vector<std::string>& addresses,
                                                client::SecurityOptions security);

  enum class Patience : std::uint8_t {
    fail_at_once,  // When every member refuses the connection.
    wait,          // Until the deadline.
  };
  /// A member that is connected. Nothing has been sent then, so that failing over is safe whatever
  /// the request.
  Result<const Member*> reach(const Deadline& deadline, Patience patience = Patience::wait);
  /// Gets a token for the user, if there is one. Calls get another one by themselves when it ends.
  /// Fails with invalid_argument when etcd refuses the login.
  Status log_in(const Deadline& deadline);
  /// For calls that are made without call(): the token, and a deadline of theirs.
  void prepare(grpc::ClientContext& context);
  /// What stands in the way of every member: see secure::explain_failure(). Else `error`.
  [[nodiscard]] Error explain(const Error& error) const;

  /// The member did not answer, or could not: others come first from now on.
  void avoid(const Member& member);

  /// One call, sent once: a write whose answer was lost may have happened.
  template <class Request, class Response>
  Result<Response> call(grpc::Status (etcdserverpb::KV::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Response*),
                        const Request& request, const Deadline& deadline) {
    // The second time with a new token: etcd did nothing under the old one.
    for (bool is_first = true;; is_first = false) {
      BATON_TRY(const Member* member, reach(deadline));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + deadline.left());
      prepare(context);
      Response response;
      count_request();
      const grpc::Status status = (member->kv.get()->*method)(&context, request, &response);
      if (status.ok()) return response;
      if (is_first && is_token_over(status)) {
        BATON_TRY_STATUS(log_in(deadline));
        continue;
      }
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
        avoid(*member);
      }
      return etcd_error(status, member->address);
    }
  }

  /// A call that changes nothing: asked again, of another member too, until the deadline.
  template <class Request, class Response>
  Result<Response> read(grpc::Status (etcdserverpb::KV::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Response*),
                        const Request& request, const Deadline& deadline) {
    while (true) {
      Result<Response> answer = call(method, request, deadline);
      if (answer || answer.error().code != Errc::unavailable || deadline.has_passed()) {
        return answer;
      }
      std::this_thread::sleep_for(std::min(deadline.left(), limits::kRetryPause));
    }
  }

  void count_request() { requests_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }

 private:
  explicit EtcdLink(client::SecurityOptions security) : security_(std::move(security)) {}
  /// Tokens end after five minutes without use, and with each change of users and roles.
  [[nodiscard]] bool is_token_over(const grpc::Status& status) const;
  /// The first connected one, from `first` on.
  const Member* connected_from(std::size_t first, bool& hopeless);

  const client::SecurityOptions security_;
  std::vector<Member> members_;
  std::mutex token_mutex_;
  std::string token_;  // Empty: there is no login.
  std::atomic<std::size_t> current_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
};

}  // namespace baton::coord
