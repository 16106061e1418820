#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cli_base/interrupt.h"
#include "cli_base/parse.h"
#include "cli_work/commands.h"
#include "cli_work/pipeline_config.h"
#include "cli_work/pipeline_progress.h"
#include "pipeline/pipeline.h"
#include "pipeline/status_server.h"

namespace baton::cli {
namespace {

using pipeline::Engine;
using pipeline::Pipeline;
using pipeline::PipelineConfig;

struct RunFlags {
  std::string file;
  std::optional<std::uint32_t> workers;
  bool json = false;
};

void say(bool warning, const std::string& line) {
  // The progress of a terminal is wiped away, and drawn again below.
  const char* const wipe = ::isatty(STDERR_FILENO) != 0 ? "\r\x1b[K" : "";
  fmt::print(stderr, "{}baton: pipeline: {}{}\n", wipe, warning ? "warning: " : "", line);
}

Result<PipelineConfig> read_config(const RunFlags& flags) {
  BATON_TRY(PipelineConfig config, read_pipeline_config(flags.file));
  if (flags.workers.has_value()) config.engine.workers = *flags.workers;
  config.engine.seed =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  config.engine.log = say;
  return config;
}

Result<std::unique_ptr<Pipeline>> open_pipeline(const RunFlags& flags) {
  BATON_TRY(PipelineConfig config, read_config(flags));
  return Pipeline::open(std::move(config));
}

void reload(const RunFlags& flags, Pipeline& pipeline) {
  auto config = read_config(flags);
  Status status = config.has_value() ? pipeline.reload(*std::move(config)) : config.error();
  if (status.has_value()) return say(false, "reloaded");
  say(true, fmt::format("not reloaded, going on as before: {}", status.error().text));
}

ExitCode exit_code_of(pipeline::Ending ending) {
  switch (ending) {
    case pipeline::Ending::drained: return ExitCode::ok;
    case pipeline::Ending::undrained: return ExitCode::partial;
    case pipeline::Ending::outage:
    case pipeline::Ending::fenced: return ExitCode::outage;
    case pipeline::Ending::source_failed: break;
  }
  return ExitCode::failure;
}

void print_end(const RunFlags& flags, const PipelineConfig& config, pipeline::Ending ending,
               const Engine& engine) {
  // Records are all that goes where records go.
  std::FILE* const target = config.sink.endpoint.kind == "stdout" ? stderr : stdout;
  fmt::print(target, "{}\n", end_text(Output(flags.json), config.name, ending, engine));
}

/// A call that hangs, of a sink above all, ends by its own time-out, which may be longer than
/// anybody's patience. What it leaves behind is what a crash would, and that comes again.
void end_in_time(const RunFlags& flags, const Pipeline& pipeline, const Engine& engine,
                 const std::stop_token& ended) {
  constexpr std::chrono::seconds kGrace{3};
  constexpr std::chrono::milliseconds kLook{20};
  const auto deadline = std::chrono::steady_clock::now() + pipeline.config().engine.drain + kGrace;
  while (std::chrono::steady_clock::now() < deadline) {
    if (ended.stop_requested()) return;
    std::this_thread::sleep_for(kLook);
  }
  say(true, "something hangs: ending without it");
  const pipeline::Ending ending = engine.early_end().value_or(pipeline::Ending::undrained);
  print_end(flags, pipeline.config(), ending, engine);
  (void)std::fflush(nullptr);
  std::_Exit(static_cast<int>(exit_code_of(ending)));
}

/// Until a signal, an outage that is too long, or the end of the source.
Result<pipeline::Ending> run_until_interrupted(const RunFlags& flags, Pipeline& pipeline,
                                               Engine& engine) {
  std::stop_source stop;
  const bool progress = !flags.json && ::isatty(STDERR_FILENO) != 0;
  const std::jthread watcher([&](const std::stop_token& ended) {
    {
      PipelineProgress shown(progress);
      while (!ended.stop_requested() && !is_interrupted() && !engine.early_end().has_value()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        shown.update(engine.counters(), engine.status());
        if (take_reload()) reload(flags, pipeline);
      }
    }
    stop.request_stop();
    end_in_time(flags, pipeline, engine, ended);
  });
  return engine.run(stop.get_token());
}

ExitCode run_run(const RunFlags& flags) {
  const Output out(flags.json);
  watch_for_interrupt();
  watch_for_reload();
  auto pipeline = open_pipeline(flags);
  if (!pipeline.has_value()) return out.fail("pipeline run", pipeline.error());
  // Everything is there, and as it should be, before anything is consumed.
  const auto findings = (*pipeline)->check(true);
  if (!findings.has_value()) return out.fail("pipeline run", findings.error());
  for (const std::string& finding : *findings) say(false, finding);
  const auto engine = (*pipeline)->engine();
  if (!engine.has_value()) return out.fail("pipeline run", engine.error());
  const PipelineConfig& config = (*pipeline)->config();
  std::unique_ptr<pipeline::StatusServer> server;
  if (config.http != "off") {
    auto started = pipeline::StatusServer::start(config.http, config.name, **engine);
    if (!started.has_value()) return out.fail("pipeline run", started.error());
    server = *std::move(started);
    say(false, fmt::format("status and metrics at http://{}", server->address()));
  }
  const auto ending = run_until_interrupted(flags, **pipeline, **engine);
  server.reset();
  if (!ending.has_value()) return out.fail("pipeline run", ending.error());
  print_end(flags, config, *ending, **engine);
  return exit_code_of(*ending);
}

Result<std::uint64_t> read_workers(std::string_view text) { return parse_number(text, 1, 256); }

}  // namespace

void add_pipeline_run(CLI::App& pipeline, Action& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* verb = add_verb(
      pipeline,
      {"run",
       "Run a pipeline until SIGTERM or SIGINT, which drain it; SIGHUP reads the config again. "
       "Exits with 0 when everything was drained, with 7 when not, and with 75 when the sink was "
       "out "
       "for longer than max_outage or has another owner.",
       "baton pipeline run config.yaml --workers 8"},
      flags, run_run, action);
  verb->add_option("CONFIG", flags->file, "The config file.")->required()->type_name("");
  add_parsed(
      *verb, "--workers", read_workers,
      [flags = flags.get()](std::uint64_t value) {
        flags->workers = static_cast<std::uint32_t>(value);
      },
      "Decoding threads, 1 to 256 [the config's].");
  add_json_flag(*verb, flags->json);
}

}  // namespace baton::cli
