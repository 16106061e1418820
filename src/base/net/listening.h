#pragma once

#include <vector>

#include "base/net/descriptor.h"
#include "base/net/listen.h"
#include "base/result.h"

namespace baton {

/// Sockets that listen, non-blocking: one, or one for each address of a host name.
struct Listening {
  std::vector<Descriptor> sockets;
  int port = 0;  // 0 for a unix socket.
};

/// Fails with unavailable, saying what stands in the way. A socket file that nobody listens on any
/// more is replaced.
Result<Listening> listen_on(const ListenAddress& address);

/// "ipv4:127.0.0.1:4711", as gRPC writes peers.
std::string peer_of(int socket);

}  // namespace baton
