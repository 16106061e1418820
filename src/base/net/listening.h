#pragma once

#include <vector>

#include "base/net/descriptor.h"
#include "base/net/listen.h"
#include "base/result.h"

namespace baton {

/// Listening, non-blocking sockets: one, or one for each address of a host name.
struct Listening {
  std::vector<Descriptor> sockets;
  int port = 0;  // 0 for a unix socket.
};

/// Fails with unavailable, saying why. A socket file that no process listens on any more is
/// replaced.
Result<Listening> listen_on(const ListenAddress& address);

/// "ipv4:127.0.0.1:4711", as gRPC writes peers.
std::string peer_of(int socket);

}  // namespace baton
