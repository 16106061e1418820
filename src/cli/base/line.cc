#include "cli/base/line.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/base/command.h"
#include "cli/base/help.h"

namespace baton::cli {
namespace {

/// The flags that may stand anywhere: those that all commands with a connection have.
class FlagsAnywhere {
 public:
  FlagsAnywhere() { add_client_flags(scratch_, flags_); }

  /// The option that `word` gives; null if there is none.
  [[nodiscard]] const CLI::Option* find(std::string_view word) const {
    const std::string name(word.substr(0, word.find('=')));
    // The parser also accepts "-a10.0.0.7:7470" for "-a 10.0.0.7:7470".
    const bool glued = word.size() > 2 && !word.starts_with("--");
    const CLI::Option* option = scratch_.get_option_no_throw(glued ? name.substr(0, 2) : name);
    return option == scratch_.get_help_ptr() ? nullptr : option;
  }
  /// Whether the next word is the value of the option that `word` gives.
  static bool takes_next(const CLI::Option& option, std::string_view word) {
    const bool glued = word.size() > 2 && !word.starts_with("--");
    return option.get_items_expected_max() > 0 && !glued &&
           word.find('=') == std::string_view::npos;
  }

 private:
  CLI::App scratch_;
  ClientFlags flags_;
};

const CLI::App* command_named(const CLI::App& parent, std::string_view word) {
  const auto found = parent.get_subcommands(
      [&](const CLI::App* below) { return below->check_name(std::string(word)); });
  return found.empty() ? nullptr : found.front();
}

std::string suggestion(const std::string& near) {
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

std::string unknown_command(const CLI::App& parent, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::App* below : visible_commands(parent)) {
    names.push_back(below->get_name());
    for (const std::string& alias : below->get_aliases()) names.push_back(alias);
  }
  const std::string shown(word.substr(0, 64));
  return fmt::format("unknown command '{}'{}", shown, suggestion(nearest(word, names)));
}

std::string unknown_words(const CLI::App& command) {
  const std::vector<std::string> words = command.remaining(true);
  if (words.empty()) return "a word is not understood";
  const std::string& word = words.front();
  if (!word.starts_with('-')) return fmt::format("unexpected argument '{}'", word.substr(0, 64));
  std::vector<std::string> names;
  const auto flags = command.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty();
  });
  for (const CLI::Option* option : flags) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string flag = word.substr(0, std::min(word.find('='), std::size_t{64}));
  return fmt::format("unknown flag '{}'{}", flag, suggestion(nearest(flag, names)));
}

std::string missing_command(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : visible_commands(command)) names.push_back(below->get_name());
  return fmt::format("give a command: {}", fmt::join(names, ", "));
}

/// "--wait needs a value": the parser's text names its own types here.
std::string missing_value(std::string_view text) {
  const auto colon = text.find(": ");
  if (colon == std::string_view::npos || !text.ends_with(" missing")) return std::string(text);
  return fmt::format("{} needs a value", text.substr(0, colon));
}

}  // namespace

bool wants_json(std::span<const char* const> words) {
  const auto end = std::ranges::find(words, std::string_view("--"),
                                     [](const char* word) { return std::string_view(word); });
  return std::any_of(words.begin(), end,
                     [](std::string_view word) { return word == "--json" || word == "-j"; });
}

Line arrange(const CLI::App& root, std::span<const char* const> words) {
  const FlagsAnywhere anywhere;
  Line line{.words = {}, .command = &root, .problem = {}};
  std::vector<std::string> moved;
  std::size_t at = 0;
  for (; at < words.size() && !visible_commands(*line.command).empty(); ++at) {
    const std::string_view word = words[at];
    if (const CLI::Option* option = anywhere.find(word); option != nullptr) {
      moved.emplace_back(word);
      if (FlagsAnywhere::takes_next(*option, word) && at + 1 < words.size()) {
        moved.emplace_back(words[++at]);
      }
      continue;
    }
    line.words.emplace_back(word);
    if (word.starts_with('-')) continue;
    const CLI::App* below = command_named(*line.command, word);
    if (below == nullptr) {
      line.problem = unknown_command(*line.command, word);
      return line;
    }
    line.command = below;
  }
  line.words.insert(line.words.end(), moved.begin(), moved.end());
  for (; at < words.size(); ++at) line.words.emplace_back(words[at]);
  return line;
}

std::string usage_problem(const CLI::App& command, const CLI::ParseError& problem) {
  std::string why = problem.what();
  std::ranges::replace(why, '\n', ' ');
  switch (static_cast<CLI::ExitCodes>(problem.get_exit_code())) {
    case CLI::ExitCodes::ExtrasError: return unknown_words(command);
    case CLI::ExitCodes::RequiredError:
      return why == "A subcommand is required" ? missing_command(command) : why;
    case CLI::ExitCodes::ArgumentMismatch: return missing_value(why);
    default: return why;
  }
}

}  // namespace baton::cli
