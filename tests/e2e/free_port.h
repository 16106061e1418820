#pragma once

namespace baton::e2e {

/// A port of this machine that no process listens on, and that no earlier call returned. Below the
/// ports that the system lends to outgoing connections: a server that is down for a while finds its
/// port free again. Call it on the test's own thread.
int free_port();

}  // namespace baton::e2e
