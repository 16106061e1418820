#pragma once

#include <string_view>

namespace baton::cli {

/// From now on SIGINT and SIGTERM are only noted; one that comes a second later ends the process.
void watch_for_interrupt();
[[nodiscard]] bool is_interrupted();
/// What is written to standard output before a second signal ends the process: the escape sequence
/// that puts a terminal right. `text` must live until the next call.
void set_last_words(std::string_view text);

/// From now on SIGHUP is only noted.
void watch_for_reload();
/// Whether there was one since the last time.
[[nodiscard]] bool take_reload();

}  // namespace baton::cli
