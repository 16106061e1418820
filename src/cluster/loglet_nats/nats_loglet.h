#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"
#include "cluster/loglet/loglet.h"

namespace baton::loglet {

/// A stream of NATS JetStream as a log (see log_stream.h for its settings).
struct NatsLogletOptions {
  std::vector<std::string> addresses{};  // "host:port"; the first one is tried first.
  std::string stream{};
  client::SecurityOptions security{};
  Duration connect_timeout = std::chrono::seconds{2};  // For each address.
};

/// Opens a client of the log, with a connection of its own. The connection keeps nothing for
/// later: when it breaks, or when redial() asks for it, the next address is dialled, and so on
/// until a server answers. Fails if no server can be reached within `patience`.
Result<std::unique_ptr<Loglet>> open_nats_loglet(NatsLogletOptions options, Duration patience);

}  // namespace baton::loglet
