#include "coord/etcd_link.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "coord/limits.h"

namespace baton::coord {
namespace {

constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 1'000;
constexpr int kConnectMs = 3'000;
// etcd hangs up on clients that ping more often than every 5 s, or while they ask for nothing.
constexpr int kKeepaliveMs = 6'000;
constexpr int kKeepaliveTimeoutMs = 2'000;

std::shared_ptr<grpc::Channel> make_channel(const std::string& address) {
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
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
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
  const std::string text = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
                               ? fmt::format("etcd at {} did not answer in time", address)
                               : fmt::format("etcd at {}: {}", address, status.error_message());
  return {code_of(status.error_code()), text};
}

EtcdLink::EtcdLink(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const auto channel = make_channel(address);
    members_.push_back({.address = address,
                        .channel = channel,
                        .kv = etcdserverpb::KV::NewStub(channel),
                        .watch = etcdserverpb::Watch::NewStub(channel)});
  }
  // So that the clients of a cluster spread over it.
  current_ = std::random_device{}() % members_.size();
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
    // Whoever waits for one channel makes gRPC work for all of them; nobody else does. In slices
    // only if another one may be faster: very short ones get gRPC nowhere.
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
