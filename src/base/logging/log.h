#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// The log lines of every program of Baton: a time, a level, and fields.
///
///     2026-01-31T12:00:00.140Z info event=ready listen=127.0.0.1:7470 shards=2
namespace baton {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// One line, without its newline. `message` is made of fields; in JSON the same fields are the
/// members of one object: {"time":..., "level":..., "event":"ready", "listen":...}. Words that are
/// not fields become its "text".
std::string log_line(std::chrono::system_clock::time_point time, std::string_view level,
                     std::string_view message, bool json);
std::string json_log_line(std::string_view time, std::string_view level, std::string_view message);

/// "2026-01-31T12:00:00.140Z".
std::string log_time(std::chrono::system_clock::time_point at);

/// `value` as a field's value: quoted when it would not be read back as one word.
std::string log_value(std::string_view value);

/// Sets up the process's log on standard error. Called once, before any other thread starts.
void start_log(LogLevel level, bool json);
/// Writes a line of the process's log.
void log_event(LogLevel level, std::string_view fields);
/// Changes the level of a log that was started. Thread-safe.
void set_log_level(LogLevel level);

}  // namespace baton
