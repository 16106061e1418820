#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/interrupt.h"
#include "cli/base/terminal.h"
#include "cli/pipeline/commands.h"
#include "cli/pipeline/pipeline_progress.h"
#include "pipeline/app/status_server.h"

namespace baton::cli {
namespace {

struct StatusFlags {
  std::string name;
  std::string http = "127.0.0.1:7472";
  bool watch = false;
  bool json = false;
};

/// The status that the pipeline reports; an error if it is not the one that was named.
Result<Json> ask(const StatusFlags& flags) {
  BATON_TRY(const std::string status, pipeline::ask_status(flags.http));
  Json json = Json::parse(status, nullptr, false);
  const std::string name = json.is_object() ? json.value("name", "") : "";
  if (flags.name.empty() || flags.name == name) return json;
  return Error{Errc::not_found,
               fmt::format("at {} runs pipeline {}, not {}", flags.http, name, flags.name)};
}

/// Redraws in place, cut to the screen. A pipeline that stops while it is watched may come back.
ExitCode watch_on_terminal(const StatusFlags& flags) {
  constexpr std::chrono::milliseconds kStep{50};
  constexpr int kSteps = 20;
  const AlternateScreen screen;
  std::string view;
  while (!is_interrupted()) {
    const auto json = ask(flags);
    if (json.has_value()) view = status_text(*json);
    AlternateScreen::draw(
        json.has_value() ? view : paint(Tone::alarm, "!! " + json.error().text) + "\n" + view);
    for (int i = 0; i < kSteps && !is_interrupted(); ++i) std::this_thread::sleep_for(kStep);
  }
  return ExitCode::ok;
}

ExitCode run_status(const StatusFlags& flags) {
  const Output out(flags.json);
  watch_for_interrupt();
  do {
    const auto json = ask(flags);
    if (!json.has_value()) return out.fail_here("pipeline status", json.error());
    if (flags.watch && !out.json() && is_terminal(STDOUT_FILENO)) return watch_on_terminal(flags);
    if (out.json()) {
      Output::object(*json);
    } else {
      Output::text(status_text(*json));
    }
    if (flags.watch) std::this_thread::sleep_for(std::chrono::seconds(1));
  } while (flags.watch && !is_interrupted());
  return ExitCode::ok;
}

}  // namespace

void add_pipeline_status(CLI::App& pipeline, Action& action) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App* verb = add_verb(
      pipeline,
      {"status", "Show a pipeline that runs or waits to begin: its progress, lag and outages.",
       "baton pipeline status orders --watch"},
      flags, run_status, action);
  verb->add_option("NAME", flags->name, "The name that the pipeline must have [any].")
      ->type_name("");
  verb->add_option("--http", flags->http, "The pipeline's status address [127.0.0.1:7472].")
      ->type_name("HOST:PORT");
  verb->add_flag("-w,--watch", flags->watch, "Show it again every second.");
  add_json_flag(*verb, flags->json);
}

}  // namespace baton::cli
