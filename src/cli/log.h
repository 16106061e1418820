#pragma once

#include <string>
#include <string_view>

#include "cli/config.h"

namespace baton::cli {

/// A log message is made of fields: "event=ready listen=127.0.0.1:7470 shards=2". This reads it
/// back and writes it as one JSON object: {"time":..., "level":..., "event":"ready", "listen":...}.
/// Words that are no field become its "text".
std::string json_log_line(std::string_view time, std::string_view level, std::string_view message);

/// `value` as a field's value: quoted when it would not be read back as one word.
std::string log_value(std::string_view value);

/// Sets up the process's log on standard error. Once, before any other thread.
void start_log(LogLevel level, bool json);

}  // namespace baton::cli
