#include "worker/etcd/etcd_link.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "base/secure/probe.h"
#include "sdk/base/channel.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 1'000;
constexpr int kConnectMs = 3'000;
// etcd hangs up on clients that ping more often than every 5 s, or while they ask for nothing.
constexpr int kKeepaliveMs = 6'000;
constexpr int kKeepaliveTimeoutMs = 2'000;

constexpr std::chrono::seconds kExplainWithin{2};

std::shared_ptr<grpc::Channel> make_channel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const std::string& server_name) {
  grpc::ChannelArguments arguments;
  // Connections of our own, or two stores of a process would share one and its fate.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  // By this name gRPC means how long an attempt may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

Errc code_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Errc::deadline_exceeded;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE: return Errc::invalid_argument;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return Errc::resource_exhausted;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::UNIMPLEMENTED: return Errc::failed_precondition;
    default: return Errc::unavailable;
  }
}

}  // namespace

Error etcd_error(const grpc::Status& status, const std::string& address) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return {Errc::failed_precondition,
            fmt::format("what answers at {} is not etcd: it does not know its requests", address)};
  }
  if (status.error_message().find("user name is empty") != std::string::npos) {
    return {Errc::invalid_argument,
            fmt::format("etcd at {} wants a login: give --user and --password-file", address)};
  }
  const std::string text = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                               ? fmt::format("etcd at {} did not answer in time", address)
                               : fmt::format("etcd at {}: {}", address, status.error_message());
  return {code_of(status.error_code()), text};
}

Result<std::shared_ptr<EtcdLink>> EtcdLink::make(const std::vector<std::string>& addresses,
                                                 client::SecurityOptions security) {
  BATON_TRY(const auto credentials, client::make_credentials(security.tls));
  const std::string server_name = security.tls ? security.tls->server_name : "";
  std::shared_ptr<EtcdLink> link(new EtcdLink(std::move(security)));
  for (const std::string& address : addresses) {
    const auto channel = make_channel(address, credentials, server_name);
    link->members_.push_back({.address = address,
                              .channel = channel,
                              .kv = etcdserverpb::KV::NewStub(channel),
                              .watch = etcdserverpb::Watch::NewStub(channel),
                              .auth = etcdserverpb::Auth::NewStub(channel)});
  }
  // So that the clients of a cluster spread over it.
  link->current_ = std::random_device{}() % link->members_.size();
  return link;
}

Status EtcdLink::log_in(const Deadline& deadline) {
  if (security_.user.empty()) return {};
  BATON_TRY(const Member* member, reach(deadline));
  etcdserverpb::AuthenticateRequest request;
  request.set_name(security_.user);
  request.set_password(security_.password);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline.left());
  etcdserverpb::AuthenticateResponse response;
  count_request();
  const grpc::Status status = member->auth->Authenticate(&context, request, &response);
  if (status.ok()) {
    const std::lock_guard lock(token_mutex_);
    token_ = response.token();
    return {};
  }
  if (status.error_message().find("authentication is not enabled") != std::string::npos) {
    return Error{Errc::invalid_argument,
                 fmt::format("etcd at {} has no logins: leave out the user", member->address)};
  }
  const Error error = etcd_error(status, member->address);
  if (error.code != Errc::invalid_argument && error.code != Errc::failed_precondition) return error;
  return Error{Errc::invalid_argument,
               fmt::format("etcd at {} refuses the login of user {}: {}", member->address,
                           security_.user, status.error_message())};
}

void EtcdLink::prepare(grpc::ClientContext& context) {
  const std::lock_guard lock(token_mutex_);
  if (!token_.empty()) context.AddMetadata("token", token_);
}

bool EtcdLink::is_token_over(const grpc::Status& status) const {
  return !security_.user.empty() &&
         (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
          status.error_message().find("revision of auth store is old") != std::string::npos);
}

Error EtcdLink::explain(const Error& error) const {
  if (error.code != Errc::unavailable && error.code != Errc::deadline_exceeded) return error;
  for (const Member& member : members_) {
    auto found = secure::explain_failure({.who = "etcd",
                                          .address = member.address,
                                          .plain = "etcd",
                                          .secure = "etcds",
                                          .tls = security_.tls},
                                         kExplainWithin);
    if (found) return *std::move(found);
  }
  return error;
}

const EtcdLink::Member* EtcdLink::connected_from(std::size_t first, bool& hopeless) {
  hopeless = true;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::size_t at = (first + i) % members_.size();
    // Lets gRPC look at a connection that nobody has used for a while, before a write goes the way
    // of one that broke in the meantime.
    grpc::Channel& channel = *members_[at].channel;
    if (channel.GetState(false) == GRPC_CHANNEL_READY) {
      channel.WaitForStateChange(GRPC_CHANNEL_READY, std::chrono::system_clock::now());
    }
    // Begins to connect, if nobody has asked for it yet.
    const auto state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY) {
      // Another thread may have chosen meanwhile; then that choice stands.
      current_.compare_exchange_strong(first, at);
      return &members_[at];
    }
    hopeless = hopeless && state == GRPC_CHANNEL_TRANSIENT_FAILURE;
  }
  return nullptr;
}

Result<const EtcdLink::Member*> EtcdLink::reach(const Deadline& deadline, Patience patience) {
  while (true) {
    bool hopeless = false;
    if (const Member* member = connected_from(current_, hopeless)) return member;
    if (deadline.has_passed() || (hopeless && patience == Patience::fail_at_once)) {
      std::vector<std::string> addresses;
      addresses.reserve(members_.size());
      for (const Member& member : members_) addresses.push_back(member.address);
      return Error{Errc::unavailable,
                   fmt::format("cannot reach etcd at {}", fmt::join(addresses, ","))};
    }
    // Only waiting for a channel makes gRPC work, and then on all of them. In slices only if
    // another channel may be faster: in very short slices gRPC makes no progress.
    const Member& first = members_[current_];
    const auto wait =
        members_.size() > 1 ? std::min(deadline.left(), limits::kConnectPoll) : deadline.left();
    first.channel->WaitForStateChange(first.channel->GetState(true),
                                      std::chrono::system_clock::now() + wait);
  }
}

void EtcdLink::avoid(const Member& member) {
  // Once, however many threads have found out at the same time.
  auto failed = static_cast<std::size_t>(&member - members_.data());
  current_.compare_exchange_strong(failed, (failed + 1) % members_.size());
}

}  // namespace baton::coord
