#pragma once

namespace baton::e2e {

/// A port of this machine that nobody listens on, and that no other call here has answered. Below
/// the ports that the system lends to outgoing connections: a server that is down for a while finds
/// its port free again. On the test's own thread.
int free_port();

}  // namespace baton::e2e
