#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/address.h"
#include "base/secure/settings.h"
#include "cli/base/interrupt.h"
#include "cli/base/parse.h"
#include "cli/base/security_flags.h"
#include "cli/base/terminal.h"
#include "cli/pipeline/commands.h"
#include "cli/pipeline/pipeline_config.h"
#include "pipeline/app/redrive.h"
#include "pipeline/app/registry.h"
#include "pipeline/ends/pipeline_config.h"

namespace baton::cli {
namespace {

using pipeline::DeadLetterStore;
using pipeline::Endpoint;
using pipeline::StoredLetter;

constexpr std::uint32_t kShownMax = 1000;

struct LetterFlags {
  std::string name{};
  std::string config{};
  std::string address = "127.0.0.1:7470";
  secure::Settings security{};
  pipeline::LetterFilter where{};
  bool json = false;
  std::uint32_t limit = 0;
  std::string id{};
  std::optional<double> rate{};
  bool dry_run = false;
};

/// Where the dead letters of a pipeline are, and where its records come from.
struct Places {
  Endpoint letters;
  pipeline::Properties letter_properties{};
  std::optional<Endpoint> source;  // Without a config: what each letter says.
  pipeline::OutputOptions output{};
  std::uint32_t redrives_max = 3;
};

/// Without a config they are where the example config puts them: in the queue NAME.dlq of the
/// broker.
Result<Places> places_of(const LetterFlags& flags) {
  if (flags.config.empty()) {
    BATON_TRY(const BrokerAddress broker, parse_broker_address(flags.address));
    // With an address without a scheme, the settings and the environment decide about TLS.
    secure::Settings settings = flags.security;
    const auto environment = secure::process_environment();
    if (!broker.is_plain) {
      secure::take_tls_variables(settings, secure::Scheme::open, environment);
    }
    BATON_TRY(Endpoint letters, pipeline::parse_dead_letters_url(fmt::format(
                                    "{}-queue://{}/{}.dlq", broker.is_tls ? "batons" : "baton",
                                    broker.address, flags.name)));
    BATON_TRY(letters.security, pipeline::load_security(letters, settings, environment));
    return Places{.letters = std::move(letters), .source = std::nullopt};
  }
  BATON_TRY(const auto config, read_pipeline_config(flags.config));
  if (config.name != flags.name) {
    return Error{Errc::invalid_argument, fmt::format("{} is of pipeline {}, not {}", flags.config,
                                                     config.name, flags.name)};
  }
  return Places{
      .letters = config.dead_letters.endpoint,
      .letter_properties = pipeline::letter_properties(config),
      .source = config.source.endpoint,
      .output = {.partitions = config.source.partitions, .properties = config.source.properties},
      .redrives_max = config.dead_letters.redrives_max};
}

/// Refuses a value that no dead letter can have, because nothing would match it.
Status check_value(std::string_view field, std::string_view value) {
  static constexpr std::array<std::string_view, 2> kClasses = {"poison", "duplicate"};
  static constexpr std::array<std::string_view, 4> kStages = {"decode", "schema", "mapping",
                                                              "sink"};
  const auto one_of = [&](std::span<const std::string_view> choices) -> Status {
    if (std::ranges::find(choices, value) != choices.end()) return {};
    return Error{Errc::invalid_argument,
                 fmt::format("{} '{}' is not one of {}", field, value.substr(0, 64),
                             fmt::join(choices, ", "))};
  };
  if (field == "class") return one_of(kClasses);
  if (field == "stage") return one_of(kStages);
  if (field != "partition" && field != "offset") return {};
  const std::uint64_t most = field == "partition" ? std::numeric_limits<std::uint32_t>::max()
                                                  : std::numeric_limits<std::int64_t>::max();
  const auto number = parse_number(value, 0, most);
  if (number.has_value() && std::to_string(*number) == value) return {};
  return Error{Errc::invalid_argument, fmt::format("{} '{}' is not a whole number from 0 to {}",
                                                   field, value.substr(0, 64), most)};
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
  BATON_TRY_STATUS(check_value(field, text.substr(equals + 1)));
  return std::pair(std::string(field), std::string(text.substr(equals + 1)));
}

/// A rate of zero would never send anything, and no limit is the default.
Result<double> parse_redrive_rate(std::string_view text) {
  BATON_TRY(const double rate, parse_rate(text));
  constexpr double kOneInAMonth = 1.0 / (30 * 24 * 3600);
  if (rate >= kOneInAMonth) return rate;
  return Error{Errc::invalid_argument, rate > 0 ? "must be at least one in 30 days, 4e-7"
                                                : "must be more than 0; leave it out for no limit"};
}

Result<std::unique_ptr<DeadLetterStore>> open_store(const LetterFlags& flags,
                                                    const Places& places) {
  return pipeline::dead_letter_kind(places.letters)
      .open_store(places.letters, {.pipeline = flags.name, .properties = places.letter_properties});
}

constexpr std::size_t kPrefixBytes = std::string_view("baton-").size();

/// "first_seen_ms" for the header "baton-first-seen-ms".
std::string field_of(std::string_view header) {
  std::string field(header.substr(kPrefixBytes));
  std::ranges::replace(field, '-', '_');
  return field;
}

std::optional<std::uint64_t> number_in(std::string_view field, std::string_view value) {
  static constexpr std::array<std::string_view, 6> kNumbers = {
      "attempts", "first_seen_ms", "last_seen_ms", "partition", "offset", "redrives"};
  if (std::ranges::find(kNumbers, field) == kNumbers.end()) return std::nullopt;
  const auto number = parse_number(value, 0, std::numeric_limits<std::int64_t>::max());
  return number.has_value() ? std::optional(*number) : std::nullopt;
}

/// A time as people read it: "first seen: 2026-01-31T12:00:00.140Z".
std::string about_text(std::string_view header, std::string_view value) {
  const std::string field = field_of(header);
  const auto number = number_in(field, value);
  if (!field.ends_with("_seen_ms") || !number.has_value()) {
    return fmt::format("{}: {}", header.substr(kPrefixBytes), printable(value));
  }
  const auto seconds = static_cast<std::time_t>(*number / 1000);
  return fmt::format("{} seen: {:%Y-%m-%dT%H:%M:%S}.{:03}Z", field.substr(0, field.find('_')),
                     fmt::gmtime(seconds), *number % 1000);
}

Json to_json(const StoredLetter& letter, bool whole) {
  Json json{{"id", letter.id}};
  put_bytes(json, "key", letter.record.key);
  for (const auto& [name, value] : letter.about) {
    if (name == "baton-key" || name == "baton-packed") continue;
    const std::string field = field_of(name);
    const auto number = number_in(field, value);
    json[field] = number.has_value() ? Json(*number) : Json(value);
  }
  if (!whole) return json;
  json["headers"] = Json::array();
  for (const auto& [name, value] : letter.record.headers) {
    Json header{{"name", name}};
    put_bytes(header, "value", value);
    json["headers"].push_back(std::move(header));
  }
  put_bytes(json, "value", letter.record.value);
  return json;
}

std::vector<std::string> row_of(const StoredLetter& letter) {
  return {printable(letter.id),
          printable(letter.what("baton-class")),
          printable(letter.what("baton-stage")),
          printable(letter.what("baton-code")),
          fmt::format("{}/{}", letter.record.partition, letter.record.offset),
          fmt::format("{}", letter.redrives()),
          printable(letter.record.key.substr(0, 40)),
          printable(letter.what("baton-message").substr(0, 100))};
}

struct Listed {
  std::vector<StoredLetter> letters{};
  std::vector<std::string> unreadable{};
  std::size_t others = 0;  // Of other pipelines, which write to the same place.
  bool more = false;       // Than were asked for.
};

Result<Listed> list(DeadLetterStore& store, const LetterFlags& flags) {
  const std::size_t most = flags.limit == 0 ? kShownMax : flags.limit;
  Listed listed;
  BATON_TRY_STATUS(store.read([&](pipeline::FoundLetter letter) {
    if (!letter.has_value()) {
      listed.unreadable.push_back(letter.error().text);
      return listed.unreadable.size() < kShownMax;
    }
    const bool is_ours = letter->what("baton-pipeline") == flags.name;
    if (!is_ours) ++listed.others;
    if (!is_ours || !matches(*letter, flags.where)) return true;
    listed.more = listed.letters.size() == most;
    if (!listed.more) listed.letters.push_back(*std::move(letter));
    return !listed.more;
  }));
  return listed;
}

/// "3 dead letters: 2 poison at decode, 1 poison at schema".
std::string summary_of(const Listed& listed) {
  std::map<std::string, std::size_t> counts;
  for (const StoredLetter& letter : listed.letters) {
    ++counts[printable(
        fmt::format("{} at {}", letter.what("baton-class"), letter.what("baton-stage")))];
  }
  std::string text = counted(listed.letters.size(), "dead letter");
  for (const char* part = ": "; const auto& [what, count] : counts) {
    text += fmt::format("{}{} {}", std::exchange(part, ", "), count, what);
  }
  if (listed.others > 0) text += fmt::format("; {} of other pipelines", listed.others);
  if (listed.more) text += "; there are more, --limit says how many are shown";
  return text;
}

/// Reports lines of a file, or records of a topic, that are not dead letters: they stay where they
/// are.
void tell_unreadable(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) fmt::print(stderr, "baton: {}\n", printable(text));
}

Result<Listed> list(const LetterFlags& flags) {
  BATON_TRY(const Places places, places_of(flags));
  BATON_TRY(const auto store, open_store(flags, places));
  return list(*store, flags);
}

/// Cuts each line to the terminal's width; if there is no terminal, the lines stay whole.
std::string fit_width(std::string_view text) {
  if (!is_terminal(STDOUT_FILENO)) return std::string(text);
  const std::size_t columns = terminal_size(STDOUT_FILENO).columns;
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += (out.empty() ? "" : "\n") + cut_line(text.substr(0, end), columns);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

ExitCode run_ls(const LetterFlags& flags) {
  const Output out(flags.json);
  const auto listed = list(flags);
  if (!listed.has_value()) return out.fail_here("pipeline dlq ls", listed.error());
  tell_unreadable(listed->unreadable);
  if (out.json()) {
    for (const StoredLetter& letter : listed->letters) Output::object(to_json(letter, false));
    return ExitCode::ok;
  }
  std::vector<std::vector<std::string>> rows{
      {"ID", "CLASS", "STAGE", "CODE", "FROM", "REDRIVES", "KEY", "MESSAGE"}};
  for (const StoredLetter& letter : listed->letters) rows.push_back(row_of(letter));
  if (rows.size() > 1) Output::text(fit_width(format_table(rows)));
  Output::text(summary_of(*listed));
  return ExitCode::ok;
}

Result<StoredLetter> show(const LetterFlags& flags) {
  if (flags.id.empty()) return Error{Errc::invalid_argument, "the id is empty"};
  BATON_TRY(const Places places, places_of(flags));
  BATON_TRY(const auto store, open_store(flags, places));
  BATON_TRY(StoredLetter letter, store->find(flags.id));
  const std::string_view pipeline = letter.what("baton-pipeline");
  if (pipeline == flags.name) return letter;
  return Error{Errc::not_found,
               fmt::format("{} is a dead letter of pipeline {}", flags.id, pipeline)};
}

ExitCode run_show(const LetterFlags& flags) {
  const Output out(flags.json);
  const auto letter = show(flags);
  if (!letter.has_value()) return out.fail_here("pipeline dlq show", letter.error());
  if (out.json()) {
    Output::object(to_json(*letter, true));
    return ExitCode::ok;
  }
  Output::text(fmt::format("{}\n  key: {}", printable(letter->id), printable(letter->record.key)));
  for (const auto& [name, value] : letter->about) {
    if (name == "baton-key") continue;
    Output::text("  " + about_text(name, value));
  }
  for (const auto& [name, value] : letter->record.headers) {
    Output::text(fmt::format("  header {}: {}", printable(name), printable(value)));
  }
  Output::text("value:" + describe_payload(letter->record.value));
  return ExitCode::ok;
}

/// "baton-stream:orders", as letters name their source, at the broker that has the letters.
Result<Endpoint> source_named(std::string_view name, const Endpoint& letters) {
  auto source = pipeline::source_beside(letters, name);
  if (source.has_value()) return *std::move(source);
  return Error{Errc::invalid_argument,
               fmt::format("the records came from '{}': give --config, which says where that is",
                           name.substr(0, 128))};
}

/// The source that the letters name. Fails if they name several, because then it is ambiguous.
Result<std::string> source_in_letters(DeadLetterStore& store, const LetterFlags& flags) {
  BATON_TRY(const Listed listed, list(store, {.name = flags.name, .where = flags.where}));
  std::set<std::string> sources;
  for (const StoredLetter& letter : listed.letters) sources.emplace(letter.what("baton-source"));
  if (sources.size() == 1) return *sources.begin();
  if (sources.empty()) {
    return Error{Errc::not_found,
                 fmt::format("there are no such dead letters of pipeline {}", flags.name)};
  }
  return Error{Errc::invalid_argument,
               fmt::format("the records came from several sources ({}): give --config, which says "
                           "where they go, or --where source=...",
                           fmt::join(sources, ", "))};
}

/// Where records go back to: only this pipeline's source.
Result<Endpoint> source_of(const Places& places, DeadLetterStore& store, LetterFlags& flags) {
  if (places.source.has_value()) return *places.source;
  BATON_TRY(const std::string source, source_in_letters(store, flags));
  // Letters from other sources may come later in the list: they stay.
  flags.where.emplace_back("source", source);
  return source_named(source, places.letters);
}

Result<pipeline::RedriveCounts> redrive(LetterFlags flags) {
  BATON_TRY(const Places places, places_of(flags));
  BATON_TRY(const auto store, open_store(flags, places));
  BATON_TRY(const Endpoint source, source_of(places, *store, flags));
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
    request.progress = [](std::uint64_t seen) {
      if (seen % 100 == 0) fmt::print(stderr, "\rlooked at {}", seen);
    };
  }
  auto counts = pipeline::redrive(*store, request, *output);
  if (request.progress) fmt::print(stderr, "\n");
  return counts;
}

ExitCode run_redrive(const LetterFlags& flags) {
  const Output out(flags.json);
  watch_for_interrupt();
  const auto counts = redrive(flags);
  if (!counts.has_value()) return out.fail_here("pipeline dlq redrive", counts.error());
  tell_unreadable(counts->unreadable_texts);
  for (const std::string& text : counts->refused_texts) {
    fmt::print(stderr, "baton: refused: {}\n", printable(text));
  }
  const ExitCode code = counts->refused > 0 ? ExitCode::partial : ExitCode::ok;
  if (out.json()) {
    Output::object(Json{{"redriven", counts->redriven},
                        {"dry_run", flags.dry_run},
                        {"other", counts->other},
                        {"redriven_too_often", counts->worn_out},
                        {"unreadable", counts->unreadable},
                        {"refused", counts->refused},
                        {"not_reached", counts->not_reached}});
    return code;
  }
  Output::text(fmt::format(
      "{} {}, {} left that did not match, {} left that were redriven too often, {} unreadable",
      counts->redriven, flags.dry_run ? "would be redriven" : "redriven", counts->other,
      counts->worn_out, counts->unreadable));
  if (counts->refused > 0) {
    Output::text(fmt::format("{} are refused by the source, and stay", counts->refused));
  }
  if (counts->not_reached > 0) {
    Output::text(
        fmt::format("{} were not looked at: among so many that stay, one run does not get "
                    "through; they are there for another",
                    counts->not_reached));
  }
  return code;
}

CLI::App* add_letter_verb(CLI::App& parent, const Verb& verb,
                          const std::shared_ptr<LetterFlags>& flags,
                          ExitCode (*run_it)(const LetterFlags&), Action& action) {
  CLI::App* command = add_verb(parent, verb, flags, run_it, action);
  command->add_option("NAME", flags->name, "The name of the pipeline.")->required()->type_name("");
  command
      ->add_option("--config", flags->config,
                   "The pipeline's config file. Needed when its dead letters are not in the queue "
                   "NAME.dlq.")
      ->type_name("FILE");
  command
      ->add_option("-a,--address", flags->address, "The broker, without --config [127.0.0.1:7470].")
      ->type_name("HOST:PORT")
      ->envname("BATON_ADDRESS");
  add_tls_flags(*command, flags->security);
  add_json_flag(*command, flags->json);
  return command;
}

void add_where(CLI::App& command, LetterFlags& flags) {
  add_parsed_many(
      command, "--where", parse_where,
      [&flags](const auto& condition) { flags.where.push_back(condition); },
      "Only dead letters whose class, code, stage, source, partition or offset has this value.")
      ->type_name("FIELD=VALUE");
}

Result<std::uint64_t> read_shown(std::string_view text) { return parse_number(text, 1, kShownMax); }
Result<std::uint64_t> read_limit(std::string_view text) {
  return parse_number(text, 1, std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

void add_pipeline_dead_letters(CLI::App& pipeline, Action& action) {
  CLI::App* dlq = add_noun(
      pipeline, {.name = "dlq",
                 .help = "Look at the dead letters: records that could not be written.",
                 .example = "baton pipeline dlq ls orders\n  baton pipeline dlq redrive orders"});

  auto ls = std::make_shared<LetterFlags>();
  CLI::App* verb = add_letter_verb(
      *dlq, {"ls", "List dead letters.", "baton pipeline dlq ls orders --where stage=schema"}, ls,
      run_ls, action);
  add_where(*verb, *ls);
  add_parsed(
      *verb, "-n,--limit", read_shown,
      [ls = ls.get()](std::uint64_t value) { ls->limit = static_cast<std::uint32_t>(value); },
      fmt::format("The most dead letters to list, 1 to {0} [{0}].", kShownMax));

  auto show = std::make_shared<LetterFlags>();
  verb = add_letter_verb(*dlq,
                         {"show", "Show one dead letter: the reason, its headers and its value.",
                          "baton pipeline dlq show orders ID"},
                         show, run_show, action);
  verb->add_option("ID", show->id, "The id, as 'ls' prints it.")->required()->type_name("");

  auto redrive = std::make_shared<LetterFlags>();
  verb = add_letter_verb(
      *dlq,
      {"redrive", "Send dead letters back to the source of the pipeline, which tries them again.",
       "baton pipeline dlq redrive orders --where class=poison --rate 100"},
      redrive, run_redrive, action);
  add_where(*verb, *redrive);
  add_parsed(
      *verb, "-n,--limit", read_limit,
      [redrive = redrive.get()](std::uint64_t value) {
        redrive->limit = static_cast<std::uint32_t>(value);
      },
      "The most dead letters to send back [all].");
  add_parsed(
      *verb, "--rate", parse_redrive_rate, [&rate = redrive->rate](double value) { rate = value; },
      "The most dead letters a second [no limit].");
  verb->add_flag("--dry-run", redrive->dry_run, "Count the dead letters, but send none back.");
}

}  // namespace baton::cli
