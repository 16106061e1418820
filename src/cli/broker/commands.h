#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The commands that talk to a broker.
namespace baton::cli {

void add_queue_commands(CLI::App& app, Action& action);
void add_stream_commands(CLI::App& app, Action& action);
void add_group_commands(CLI::App& app, Action& action);
void add_kv_commands(CLI::App& app, Action& action);

// The verbs of `baton queue` that have a file of their own.
void add_queue_send(CLI::App& queue, Action& action);
void add_queue_lease(CLI::App& queue, Action& action);
void add_queue_tools(CLI::App& queue, Action& action);

// The verbs of `baton stream` that have a file of their own.
void add_stream_append(CLI::App& stream, Action& action);
void add_stream_read(CLI::App& stream, Action& action);
void add_stream_subscribe(CLI::App& stream, Action& action);

// The verb of `baton group` that has a file of its own.
void add_group_offset(CLI::App& group, Action& action);

// The verbs of `baton kv` that have a file of their own.
void add_kv_keys(CLI::App& kv, Action& action);
void add_kv_watch(CLI::App& kv, Action& action);

}  // namespace baton::cli
