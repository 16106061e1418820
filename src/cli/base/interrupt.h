#pragma once

#include <string_view>

namespace baton::cli {

/// From now on SIGINT and SIGTERM set a flag; one that comes a second later ends the process.
void watch_for_interrupt();
[[nodiscard]] bool is_interrupted();
/// Sets the text written to standard output before a second signal ends the process: the escape
/// sequence that restores a terminal. `text` must live until the next call.
void set_last_words(std::string_view text);

/// From now on SIGHUP only sets a flag.
void watch_for_reload();
/// Whether a SIGHUP has come since the last call.
[[nodiscard]] bool take_reload();

}  // namespace baton::cli
