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

#include "base/logging/log.h"
#include "cli/base/interrupt.h"
#include "cli/base/parse.h"
#include "cli/pipeline/commands.h"
#include "cli/pipeline/pipeline_config.h"
#include "cli/pipeline/pipeline_progress.h"
#include "pipeline/app/pipeline.h"
#include "pipeline/app/registry.h"
#include "pipeline/app/status_server.h"

namespace baton::cli {
namespace {

using pipeline::Engine;
using pipeline::Pipeline;
using pipeline::PipelineConfig;

struct RunFlags {
  std::string file;
  std::optional<std::uint32_t> workers;
  std::string id;
  bool json = false;
};

/// Lines of the log on standard error, in the form of every program's log.
class RunLog {
 public:
  explicit RunLog(bool json) : json_(json) {}

  void operator()(bool warning, const std::string& text) const {
    const std::string line =
        log_line(std::chrono::system_clock::now(), warning ? "warning" : "info",
                 fmt::format("event=pipeline text={}", log_value(text)), json_);
    // The progress line of a terminal is erased, and drawn again below.
    const bool wipes = !json_ && ::isatty(STDERR_FILENO) != 0;
    fmt::print(stderr, "{}{}\n", wipes ? "\r\x1b[K" : "", line);
  }

 private:
  bool json_;
};

Result<PipelineConfig> read_config(const RunFlags& flags) {
  BATON_TRY(PipelineConfig config, read_pipeline_config(flags.file));
  if (!flags.id.empty()) BATON_TRY_STATUS(pipeline::set_id(config, flags.id));
  if (flags.workers.has_value()) config.engine.workers = *flags.workers;
  config.engine.seed =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  config.engine.log = RunLog(flags.json);
  return config;
}

Result<std::unique_ptr<Pipeline>> open_pipeline(const RunFlags& flags) {
  BATON_TRY(PipelineConfig config, read_config(flags));
  return Pipeline::open(std::move(config));
}

void reload(const RunFlags& flags, Pipeline& pipeline) {
  const RunLog say(flags.json);
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

void print_end(const RunFlags& flags, const Pipeline& pipeline, pipeline::Ending ending) {
  // If records go to standard output, nothing else does.
  const pipeline::Endpoint& sink = pipeline.config().sink.endpoint;
  std::FILE* const target = pipeline::sink_kind(sink).owns_stdout ? stderr : stdout;
  fmt::print(target, "{}\n",
             end_text(Output(flags.json), pipeline.config().name, ending, pipeline.running()));
}

/// A call that hangs, above all in a sink, ends by its own timeout, which may be longer than a
/// user's patience. Ending the process leaves what a crash would, and those records come again.
void end_in_time(const RunFlags& flags, const Pipeline& pipeline, pipeline::Ending by_then,
                 const std::stop_token& ended) {
  constexpr std::chrono::seconds kGrace{3};
  constexpr std::chrono::milliseconds kLook{20};
  const Engine* engine = pipeline.running();
  const Duration drain = engine == nullptr ? Duration::zero() : pipeline.config().engine.drain;
  const auto deadline = std::chrono::steady_clock::now() + drain + kGrace;
  while (std::chrono::steady_clock::now() < deadline) {
    if (ended.stop_requested()) return;
    std::this_thread::sleep_for(kLook);
  }
  RunLog(flags.json)(true, "something hangs: ending without it");
  const auto early = engine == nullptr ? std::nullopt : engine->early_end();
  print_end(flags, pipeline, early.value_or(by_then));
  (void)std::fflush(nullptr);
  std::_Exit(static_cast<int>(exit_code_of(early.value_or(by_then))));
}

/// Waits until source, sink and dead letters are available; nullopt then. A call to something that
/// hangs may take long, and an interrupt does not wait for its end.
std::optional<Result<pipeline::Ending>> wait_for_start(const RunFlags& flags, Pipeline& pipeline) {
  const std::jthread watcher([&](const std::stop_token& ended) {
    while (!is_interrupted()) {
      if (ended.stop_requested()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    end_in_time(flags, pipeline, pipeline::Ending::drained, ended);
  });
  const auto started = pipeline.start([&] {
    if (take_reload()) reload(flags, pipeline);
    return is_interrupted();
  });
  if (!started.has_value()) return started.error();
  switch (*started) {
    case Pipeline::Start::ready: break;
    case Pipeline::Start::outage: return pipeline::Ending::outage;
    case Pipeline::Start::given_up: return pipeline::Ending::drained;
  }
  return std::nullopt;
}

/// Runs until a signal, an outage that is too long, or the end of the source.
Result<pipeline::Ending> run_until_interrupted(const RunFlags& flags, Pipeline& pipeline) {
  Engine& engine = pipeline.engine();
  std::stop_source stop;
  const RunLog say(flags.json);
  const std::jthread watcher([&](const std::stop_token& ended) {
    {
      const bool on_terminal = !flags.json && ::isatty(STDERR_FILENO) != 0;
      PipelineProgress shown(
          {.on_terminal = on_terminal, .log = [&](const std::string& line) { say(false, line); }});
      while (!ended.stop_requested() && !is_interrupted() && !engine.early_end().has_value()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        shown.update(engine.counters(), engine.status());
        if (take_reload()) reload(flags, pipeline);
      }
    }
    if (is_interrupted()) {
      say(false, fmt::format("draining: {} in flight, for up to {}",
                             counted(engine.status().window_records, "record"),
                             format_duration(pipeline.config().engine.drain)));
    }
    stop.request_stop();
    end_in_time(flags, pipeline, pipeline::Ending::undrained, ended);
  });
  return engine.run(stop.get_token());
}

Result<pipeline::Ending> run_to_its_end(const RunFlags& flags, Pipeline& pipeline) {
  if (auto ended = wait_for_start(flags, pipeline)) return *std::move(ended);
  RunLog(flags.json)(false, "reading");
  return run_until_interrupted(flags, pipeline);
}

ExitCode run_run(const RunFlags& flags) {
  const Output out(flags.json);
  watch_for_interrupt();
  watch_for_reload();
  auto pipeline = open_pipeline(flags);
  if (!pipeline.has_value()) return out.fail_here("pipeline run", pipeline.error());
  const PipelineConfig& config = (*pipeline)->config();
  // Started first: the status shows what is waited for, and a port in use is reported before
  // anything else has begun.
  std::unique_ptr<pipeline::StatusServer> server;
  if (config.http != "off") {
    auto started = pipeline::StatusServer::start(config.http, config.name, **pipeline);
    if (!started.has_value()) return out.fail_here("pipeline run", started.error());
    server = *std::move(started);
    RunLog(flags.json)(false, fmt::format("status and metrics at http://{}", server->address()));
  }
  const auto ending = run_to_its_end(flags, **pipeline);
  server.reset();
  if (!ending.has_value()) return out.fail_here("pipeline run", ending.error());
  print_end(flags, **pipeline, *ending);
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
       "Exits with 0 when everything was drained, with 7 when not, and with 75 when the source or "
       "the sink was unavailable for longer than max_outage, or the sink has another owner.",
       "baton pipeline run config.yaml --workers 8"},
      flags, run_run, action);
  verb->add_option("CONFIG", flags->file, "The config file.")->required()->type_name("");
  add_parsed(
      *verb, "--workers", read_workers,
      [flags = flags.get()](std::uint64_t value) {
        flags->workers = static_cast<std::uint32_t>(value);
      },
      "Decoding threads, 1 to 256 [the config's].");
  verb->add_option("--id", flags->id,
                   "A name for this process in its Kafka group, over the config's. Started again "
                   "after a kill, it has its partitions back at once.")
      ->type_name("NAME");
  add_json_flag(*verb, flags->json);
}

}  // namespace baton::cli
