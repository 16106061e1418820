#pragma once

namespace baton::cli {

/// From now on SIGINT and SIGTERM are only noted; one that comes a second later ends the process.
void watch_for_interrupt();
[[nodiscard]] bool is_interrupted();

/// From now on SIGHUP is only noted.
void watch_for_reload();
/// Whether there was one since the last time.
[[nodiscard]] bool take_reload();

}  // namespace baton::cli
