#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "cli_work/commands.h"
#include "cli_work/pipeline_config.h"
#include "pipeline/example.h"
#include "pipeline/pipeline.h"

namespace baton::cli {
namespace {

struct InitFlags {
  std::string name;
  std::string address = "127.0.0.1:7470";
};

ExitCode run_init(const InitFlags& flags) {
  const Status status = validate_name("name", flags.name, 64);
  if (!status.has_value()) return Output(false).fail("pipeline init", status.error());
  fmt::print("{}", pipeline::example_config(flags.name, flags.address));
  return ExitCode::ok;
}

struct CheckFlags {
  std::string file;
  bool apply = false;
  bool json = false;
};

Result<std::vector<std::string>> check(const CheckFlags& flags) {
  BATON_TRY(auto config, read_pipeline_config(flags.file));
  BATON_TRY(const auto checked, pipeline::Pipeline::open(std::move(config)));
  return checked->check(flags.apply);
}

ExitCode run_check(const CheckFlags& flags) {
  const Output out(flags.json);
  const auto findings = check(flags);
  if (!findings.has_value()) return out.fail("pipeline check", findings.error());
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
  CLI::App* pipeline = app.add_subcommand(
      "pipeline",
      "From a source, through workers, into a database: nothing skipped, nothing twice.");
  pipeline->require_subcommand(1);

  auto init = std::make_shared<InitFlags>();
  CLI::App* verb = add_verb(*pipeline,
                            {"init", "Print a commented config: the example of orders.",
                             "baton pipeline init orders > config.yaml"},
                            init, run_init, action);
  verb->add_option("name", init->name, "The pipeline's name")->required();
  verb->add_option("--address", init->address, "The broker it speaks of [127.0.0.1:7470].")
      ->envname("BATON_ADDRESS");

  auto check = std::make_shared<CheckFlags>();
  verb = add_verb(*pipeline,
                  {"check", "Validate a config, connect to everything, verify the tables.",
                   "baton pipeline check config.yaml --apply"},
                  check, run_check, action);
  verb->add_option("config", check->file, "The config file")->required();
  verb->add_flag("--apply", check->apply,
                 "Make what is missing: tables, what takes the dead letters.");
  verb->add_flag("--json", check->json, "Output for programs.");

  add_pipeline_run(*pipeline, action);
  add_pipeline_status(*pipeline, action);
  add_pipeline_dead_letters(*pipeline, action);
  add_pipeline_generate(*pipeline, action);
}

}  // namespace baton::cli
