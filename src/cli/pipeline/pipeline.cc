#include "pipeline/app/pipeline.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "cli/pipeline/commands.h"
#include "cli/pipeline/pipeline_config.h"
#include "pipeline/app/check_report.h"
#include "pipeline/app/example.h"
#include "pipeline/app/status_server.h"

namespace baton::cli {
namespace {

struct InitFlags {
  std::string name;
  std::string address = "127.0.0.1:7470";
};

ExitCode run_init(const InitFlags& flags) {
  const Status status = validate_name("name", flags.name, 64);
  if (!status.has_value()) return Output(false).fail_here("pipeline init", status.error());
  fmt::print("{}", pipeline::example_config(flags.name, flags.address));
  return ExitCode::ok;
}

struct CheckFlags {
  std::string file;
  bool apply = false;
  bool json = false;
};

/// Writes to standard error what is being waited for, once it takes long.
class SlowNote {
 public:
  explicit SlowNote(const char* text)
      : thread_([text](const std::stop_token& over) {
          constexpr std::chrono::milliseconds kLong{1'000};
          constexpr std::chrono::milliseconds kLook{20};
          for (auto left = kLong; left.count() > 0; left -= kLook) {
            if (over.stop_requested()) return;
            std::this_thread::sleep_for(kLook);
          }
          fmt::print(stderr, "baton: pipeline check: {}\n", text);
        }) {}

 private:
  std::jthread thread_;
};

Result<std::vector<std::string>> check(const CheckFlags& flags) {
  BATON_TRY(auto config, read_pipeline_config(flags.file));
  BATON_TRY_STATUS(pipeline::check_http(config));
  BATON_TRY(const auto checked, pipeline::Pipeline::open(std::move(config)));
  const SlowNote note("waiting for an answer of source, sink or dead letters, up to 10 s each");
  BATON_TRY(const auto report, checked->check(flags.apply));
  return pipeline::to_sentences(report);
}

ExitCode run_check(const CheckFlags& flags) {
  const Output out(flags.json);
  const auto findings = check(flags);
  if (!findings.has_value()) return out.fail_here("pipeline check", findings.error());
  if (out.json()) {
    Output::object(Json{{"ok", true}, {"findings", *findings}});
    return ExitCode::ok;
  }
  for (const std::string& finding : *findings) Output::text(finding);
  Output::text("ok");
  return ExitCode::ok;
}

}  // namespace

void add_pipeline_commands(CLI::App& app, Action& action) {
  CLI::App* pipeline =
      add_noun(app, {.name = "pipeline",
                     .help = "Write the records of a stream, queue or topic into a database.",
                     .example = "baton pipeline init orders > config.yaml\n"
                                "  baton pipeline check config.yaml\n"
                                "  baton pipeline run config.yaml"});

  auto init = std::make_shared<InitFlags>();
  CLI::App* verb =
      add_verb(*pipeline,
               {"init", "Print an example config with comments: orders from a stream into SQLite.",
                "baton pipeline init orders > config.yaml"},
               init, run_init, action);
  verb->add_option("NAME", init->name, "The name of the pipeline.")->required()->type_name("");
  verb->add_option("-a,--address", init->address, "The broker in the config [127.0.0.1:7470].")
      ->type_name("HOST:PORT")
      ->envname("BATON_ADDRESS");

  auto check = std::make_shared<CheckFlags>();
  verb = add_verb(
      *pipeline,
      {"check", "Check a config: connect to source, sink and dead letters, and compare the tables.",
       "baton pipeline check config.yaml --apply"},
      check, run_check, action);
  verb->add_option("CONFIG", check->file, "The config file.")->required()->type_name("");
  verb->add_flag("--apply", check->apply,
                 "Create what is missing: tables, and the place for dead letters.");
  add_json_flag(*verb, check->json);

  add_pipeline_run(*pipeline, action);
  add_pipeline_status(*pipeline, action);
  add_pipeline_dead_letters(*pipeline, action);
  add_pipeline_generate(*pipeline, action);
}

}  // namespace baton::cli
