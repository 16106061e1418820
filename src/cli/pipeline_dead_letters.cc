#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/pipeline_config.h"
#include "pipeline/dead_letter_queue.h"

namespace baton::cli {
namespace {

using pipeline::DeadLetterQueue;
using pipeline::Endpoint;
using pipeline::StoredLetter;

constexpr std::uint32_t kShownMax = 1000;

struct LetterFlags {
  std::string name;
  std::string config;
  std::string address = "127.0.0.1:7470";
  pipeline::LetterFilter where;
  bool json = false;
  std::uint32_t limit = 0;
  std::string id;
  std::optional<double> rate;
  bool dry_run = false;
};

/// Where the letters of a pipeline are, and where its records come from.
struct Places {
  Endpoint letters;
  std::optional<Endpoint> source;  // Without a config: what each letter says.
  pipeline::OutputOptions output{};
  std::uint32_t redrives_max = 3;
};

/// Without a config they are where the example puts them: in the queue NAME.dlq of the broker.
Result<Places> places_of(const LetterFlags& flags) {
  if (flags.config.empty()) {
    BATON_TRY(Endpoint letters, pipeline::parse_dead_letters_url(fmt::format(
                                    "baton-queue://{}/{}.dlq", flags.address, flags.name)));
    return Places{.letters = std::move(letters), .source = std::nullopt};
  }
  BATON_TRY(const auto config, read_pipeline_config(flags.config));
  if (config.name != flags.name) {
    return Error{Errc::invalid_argument, fmt::format("{} is of pipeline {}, not {}", flags.config,
                                                     config.name, flags.name)};
  }
  if (config.dead_letters.endpoint.kind != "baton-queue") {
    return Error{
        Errc::invalid_argument,
        fmt::format("dead letters in {} are not read back: only those in a baton-queue are",
                    config.dead_letters.endpoint.url)};
  }
  return Places{
      .letters = config.dead_letters.endpoint,
      .source = config.source.endpoint,
      .output = {.partitions = config.source.partitions, .properties = config.source.properties},
      .redrives_max = config.dead_letters.redrives_max};
}

Result<std::pair<std::string, std::string>> parse_where(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kFields = {"class",  "code",      "stage",
                                                              "source", "partition", "offset"};
  const std::size_t equals = text.find('=');
  const std::string_view field = text.substr(0, equals);
  if (equals == std::string_view::npos || std::ranges::find(kFields, field) == kFields.end()) {
    return Error{Errc::invalid_argument, fmt::format("'{}' is not FIELD=VALUE with a field of {}",
                                                     text.substr(0, 64), fmt::join(kFields, ", "))};
  }
  return std::pair(std::string(field), std::string(text.substr(equals + 1)));
}

Json to_json(const DeadLetterQueue::Entry& entry, bool whole) {
  const StoredLetter& letter = entry.letter;
  Json json{{"id", entry.id}, {"key", letter.record.key}};
  for (const auto& [name, value] : letter.about) {
    if (name != "baton-key" && name != "baton-packed") json[name.substr(6)] = value;
  }
  if (!whole) return json;
  json["headers"] = Json::array();
  for (const auto& [name, value] : letter.record.headers) json["headers"].push_back({name, value});
  json["value"] = letter.record.value;
  return json;
}

std::string line_of(const DeadLetterQueue::Entry& entry) {
  const StoredLetter& letter = entry.letter;
  return fmt::format("{}  {:<9}  {:<8}  {}/{}  {}  {}", entry.id, letter.what("baton-class"),
                     letter.what("baton-stage"), letter.what("baton-partition"),
                     letter.what("baton-offset"), letter.record.key.substr(0, 40),
                     letter.what("baton-message").substr(0, 100));
}

ExitCode run_ls(const LetterFlags& flags) {
  const Output out(flags.json);
  const auto places = places_of(flags);
  if (!places.has_value()) return out.fail("pipeline dlq ls", places.error());
  auto queue = DeadLetterQueue::open(places->letters);
  if (!queue.has_value()) return out.fail("pipeline dlq ls", queue.error());
  const auto entries = queue->list(flags.limit == 0 ? kShownMax : flags.limit, flags.where);
  if (!entries.has_value()) return out.fail("pipeline dlq ls", entries.error());
  for (const DeadLetterQueue::Entry& entry : *entries) {
    if (out.json()) {
      Output::object(to_json(entry, false));
    } else {
      Output::text(line_of(entry));
    }
  }
  if (!out.json()) Output::text(fmt::format("{} dead letters", entries->size()));
  return ExitCode::ok;
}

ExitCode run_show(const LetterFlags& flags) {
  const Output out(flags.json);
  const auto places = places_of(flags);
  if (!places.has_value()) return out.fail("pipeline dlq show", places.error());
  auto queue = DeadLetterQueue::open(places->letters);
  if (!queue.has_value()) return out.fail("pipeline dlq show", queue.error());
  const auto entry = queue->show(flags.id);
  if (!entry.has_value()) return out.fail("pipeline dlq show", entry.error());
  if (out.json()) {
    Output::object(to_json(*entry, true));
    return ExitCode::ok;
  }
  Output::text(fmt::format("{}\n  key: {}", entry->id, entry->letter.record.key));
  for (const auto& [name, value] : entry->letter.about) {
    if (name != "baton-key") Output::text(fmt::format("  {}: {}", name.substr(6), value));
  }
  for (const auto& [name, value] : entry->letter.record.headers) {
    Output::text(fmt::format("  header {}: {}", name, value));
  }
  Output::text("value:" + describe_payload(entry->letter.record.value));
  return ExitCode::ok;
}

/// "baton-stream:orders", as letters name their source, at the broker they are on.
Result<Endpoint> source_named(std::string_view name, const std::string& address) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (colon == std::string_view::npos || !kind.starts_with("baton-")) {
    return Error{Errc::invalid_argument,
                 fmt::format("the records came from '{}': give --config, which says where that is",
                             name.substr(0, 128))};
  }
  return pipeline::parse_source_url(
      fmt::format("{}://{}/{}", kind, address, name.substr(colon + 1)));
}

/// Where records go back to: this pipeline's source and no other.
Result<Endpoint> source_of(const Places& places, DeadLetterQueue& queue) {
  if (places.source.has_value()) return *places.source;
  BATON_TRY(const auto first, queue.list(1, {}));
  if (first.empty()) return Error{Errc::not_found, "there are no dead letters"};
  return source_named(first.front().letter.what("baton-source"), places.letters.address);
}

Result<pipeline::RedriveCounts> redrive(const LetterFlags& flags) {
  BATON_TRY(const Places places, places_of(flags));
  BATON_TRY(DeadLetterQueue queue, DeadLetterQueue::open(places.letters));
  BATON_TRY(const Endpoint source, source_of(places, queue));
  BATON_TRY(const auto output, pipeline::open_output(source, places.output));
  pipeline::RedriveRequest request;
  request.pipeline = flags.name;
  request.where = flags.where;
  request.limit = flags.limit;
  request.rate = flags.rate.value_or(0);
  request.redrives_max = places.redrives_max;
  request.dry_run = flags.dry_run;
  request.give_up = is_interrupted;
  if (!flags.json && ::isatty(STDERR_FILENO) != 0) {
    request.progress = [](std::uint64_t seen, std::uint64_t all) {
      if (seen % 100 == 0 || seen == all) fmt::print(stderr, "\r{} of {}", seen, all);
      if (seen == all) fmt::print(stderr, "\n");
    };
  }
  return queue.redrive(request, *output);
}

ExitCode run_redrive(const LetterFlags& flags) {
  const Output out(flags.json);
  watch_for_interrupt();
  const auto counts = redrive(flags);
  if (!counts.has_value()) return out.fail("pipeline dlq redrive", counts.error());
  if (out.json()) {
    Output::object(Json{{"redriven", counts->redriven},
                        {"dry_run", flags.dry_run},
                        {"other", counts->other},
                        {"redriven_too_often", counts->worn_out},
                        {"unreadable", counts->unreadable}});
    return ExitCode::ok;
  }
  Output::text(fmt::format(
      "{} {}, {} left that did not match, {} left that were redriven too often, {} unreadable",
      counts->redriven, flags.dry_run ? "would be redriven" : "redriven", counts->other,
      counts->worn_out, counts->unreadable));
  return ExitCode::ok;
}

CLI::App* add_letter_verb(CLI::App& parent, const Verb& verb,
                          const std::shared_ptr<LetterFlags>& flags,
                          ExitCode (*run_it)(const LetterFlags&), Action& action) {
  CLI::App* command = add_verb(parent, verb, flags, run_it, action);
  command->add_option("name", flags->name, "The pipeline's name")->required();
  command->add_option("--config", flags->config,
                      "Its config file, if its letters are elsewhere than in NAME.dlq.");
  command->add_option("--address", flags->address, "The broker, without a config [127.0.0.1:7470].")
      ->envname("BATON_ADDRESS");
  command->add_flag("--json", flags->json, "Output for programs.");
  return command;
}

void add_where(CLI::App& command, LetterFlags& flags) {
  add_parsed_many(
      command, "--where", parse_where,
      [&flags](const auto& condition) { flags.where.push_back(condition); },
      "Only those with class, code, stage, source, partition or offset as said.")
      ->type_name("FIELD=VALUE");
}

}  // namespace

void add_pipeline_dead_letters(CLI::App& pipeline, Action& action) {
  CLI::App* dlq = pipeline.add_subcommand("dlq", "The records that could not be written.");
  dlq->require_subcommand(1);

  auto ls = std::make_shared<LetterFlags>();
  CLI::App* verb = add_letter_verb(
      *dlq, {"ls", "List dead letters.", "baton pipeline dlq ls orders --where stage=schema"}, ls,
      run_ls, action);
  add_where(*verb, *ls);
  verb->add_option("--limit", ls->limit, "At most so many [1000].")
      ->check(CLI::Range(1U, kShownMax));

  auto show = std::make_shared<LetterFlags>();
  verb = add_letter_verb(*dlq,
                         {"show", "Show one, whole: why it is there, headers, value.",
                          "baton pipeline dlq show orders ID"},
                         show, run_show, action);
  verb->add_option("id", show->id, "Its id, as ls says")->required();

  auto redrive = std::make_shared<LetterFlags>();
  verb = add_letter_verb(
      *dlq,
      {"redrive", "Send them back into the pipeline's source, to be tried again.",
       "baton pipeline dlq redrive orders --where class=poison --rate 100 --dry-run"},
      redrive, run_redrive, action);
  add_where(*verb, *redrive);
  verb->add_option("--limit", redrive->limit, "At most so many [all].");
  add_parsed(
      *verb, "--rate", parse_rate, [&rate = redrive->rate](double value) { rate = value; },
      "So many a second at most [no limit].");
  verb->add_flag("--dry-run", redrive->dry_run, "Only count.");
}

}  // namespace baton::cli
