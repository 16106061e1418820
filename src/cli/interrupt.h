#pragma once

namespace baton::cli {

/// From now on SIGINT and SIGTERM are only noted, once; a second one ends the process.
void watch_for_interrupt();
[[nodiscard]] bool is_interrupted();

}  // namespace baton::cli
