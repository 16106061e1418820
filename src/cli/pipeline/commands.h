#pragma once

#include <CLI/CLI.hpp>

#include "cli/base/command.h"

/// The commands of pipelines, which run in this process.
namespace baton::cli {

void add_pipeline_commands(CLI::App& app, Action& action);

// The verbs of `baton pipeline` that have a file of their own.
void add_pipeline_run(CLI::App& pipeline, Action& action);
void add_pipeline_status(CLI::App& pipeline, Action& action);
void add_pipeline_dead_letters(CLI::App& pipeline, Action& action);
void add_pipeline_generate(CLI::App& pipeline, Action& action);

}  // namespace baton::cli
