#include "cli/base/help.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "cli/base/command.h"
#include "cli/base/terminal.h"

namespace baton::cli {
namespace {

// A longer name has its description on the next line.
constexpr std::size_t kNameColumnMax = 26;
// Lines longer than this are hard to read, however wide the terminal.
constexpr std::size_t kWidthMax = 110;

using Entry = std::pair<std::string, std::string>;  // A name and its description.

bool is_repeated(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string positional_name(const CLI::Option& option) {
  std::string name = option.get_name(true, false);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return is_repeated(option) ? name + "..." : name;
}

std::string flag_name(const CLI::Option& option) {
  std::string name;
  for (const std::string& text : option.get_snames()) name += fmt::format("-{}, ", text);
  for (const std::string& text : option.get_lnames()) name += fmt::format("--{}, ", text);
  name.resize(name.size() - 2);
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0 && !type.empty()) name += " " + type;
  return name;
}

std::string flag_help(const CLI::Option& option) {
  std::string help = option.get_description();
  if (!option.get_envname().empty()) help += fmt::format(" [${}]", option.get_envname());
  if (option.get_required()) help += " Required.";
  return help;
}

/// The first sentence of a description.
std::string summary(const std::string& description) {
  const auto end = description.find(". ");
  return end == std::string::npos ? description : description.substr(0, end + 1);
}

std::string list_text(const std::vector<Entry>& entries, std::size_t width) {
  std::size_t column = 0;
  for (const auto& [name, help] : entries) {
    if (name.size() <= kNameColumnMax) column = std::max(column, name.size());
  }
  const std::string margin(column + 4, ' ');
  std::string out;
  for (const auto& [name, help] : entries) {
    const std::vector<std::string> lines = wrap(help, width - margin.size());
    const bool apart = name.size() > column;
    if (apart) out += fmt::format("  {}\n", name);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      out += i == 0 && !apart ? fmt::format("  {:<{}}  {}", name, column, lines[i])
                              : margin + lines[i];
      out.erase(out.find_last_not_of(' ') + 1);
      out.push_back('\n');
    }
  }
  return out;
}

std::string section(std::string_view title, const std::vector<Entry>& entries, std::size_t width) {
  if (entries.empty()) return {};
  return fmt::format("\n{}:\n{}", title, list_text(entries, width));
}

std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty();
  });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::string usage(const CLI::App& command, std::size_t width) {
  std::string text = "Usage: " + command_path(command);
  if (!visible_commands(command).empty()) text += " COMMAND";
  std::string last;  // What stands behind all flags.
  for (const CLI::Option* option : positionals_of(command)) {
    const std::string name = positional_name(*option);
    if (option->get_group() == kBehindFlags) {
      last += fmt::format(" [-- {}]", name);
    } else {
      text += option->get_required() ? " " + name : fmt::format(" [{}]", name);
    }
  }
  for (const CLI::Option* option : flags_of(command)) {
    if (!option->get_required()) continue;
    text += fmt::format(" --{} {}", option->get_lnames().front(), option->get_type_name());
  }
  text += " [flags]" + last;
  std::string out;
  for (const std::string& line : wrap(text, width - 2))
    out += (out.empty() ? "" : "  ") + line + "\n";
  return out;
}

std::string commands_text(const CLI::App& command, std::size_t width) {
  std::vector<Entry> entries;
  for (const CLI::App* below : visible_commands(command)) {
    std::string name = below->get_name();
    for (const std::string& alias : below->get_aliases()) name += ", " + alias;
    entries.emplace_back(std::move(name), summary(below->get_description()));
  }
  return section("Commands", entries, width);
}

std::string arguments_text(const CLI::App& command, std::size_t width) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : positionals_of(command)) {
    entries.emplace_back(positional_name(*option), option->get_description());
  }
  return section("Arguments", entries, width);
}

/// The flags of each group, except those of the connection, which are only referred to.
std::string flags_text(const CLI::App& command, std::size_t width) {
  std::vector<std::pair<std::string, std::vector<Entry>>> groups{{"Flags", {}}};
  bool connects = false;
  for (const CLI::Option* option : flags_of(command)) {
    std::string group = option->get_group();
    if (group == kConnectionGroup) {
      connects = true;
      continue;
    }
    if (group == "Options") group = "Flags";
    auto found = std::ranges::find(groups, group, &decltype(groups)::value_type::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {group, {}});
    found->second.emplace_back(flag_name(*option), flag_help(*option));
  }
  // --help comes first in the tree; people look for the others.
  std::ranges::rotate(groups.front().second, groups.front().second.begin() + 1);
  std::string out;
  for (const auto& [name, entries] : groups) out += section(name, entries, width);
  if (connects) {
    out += "\n";
    constexpr const char* kWhere =
        "Connection flags, as --address and --tls: see 'baton help connection'.";
    for (const std::string& line : wrap(kWhere, width)) out += line + "\n";
  }
  return out;
}

/// How many letters to add, leave out, replace or swap to turn one word into the other.
std::size_t distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> last(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t other = left[i - 1] == right[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      const bool swapped =
          i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last[right.size()];
}

}  // namespace

std::string command_path(const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != nullptr;
       above = above->get_parent()) {
    path.insert(0, fmt::format("{} ", above->get_name()));
  }
  return path;
}

std::vector<const CLI::App*> visible_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* below) { return !below->get_group().empty(); });
}

std::string help_page(const CLI::App& command, std::size_t width) {
  const std::size_t columns = std::min(width, kWidthMax);
  std::string out = usage(command, columns) + "\n";
  for (const std::string& line : wrap(command.get_description(), columns)) out += line + "\n";
  out += arguments_text(command, columns);
  out += commands_text(command, columns);
  out += flags_text(command, columns);
  const std::string footer = command.get_footer();
  if (!footer.empty()) out += fmt::format("\n{}\n", footer);
  return out;
}

std::string connection_page(std::size_t width) {
  CLI::App scratch;
  ClientFlags flags;
  add_client_flags(scratch, flags);
  std::vector<Entry> entries;
  for (const CLI::Option* option : flags_of(scratch)) {
    if (option->get_group() != kConnectionGroup) continue;
    entries.emplace_back(flag_name(*option), flag_help(*option));
  }
  const std::size_t columns = std::min(width, kWidthMax);
  std::string out;
  constexpr std::string_view kWhat =
      "Flags of every command that talks to a broker. They may stand anywhere on the line: before "
      "the command, inside it or behind it. A variable of the environment is used where the flag "
      "is "
      "not given.";
  for (const std::string& line : wrap(kWhat, columns)) out += line + "\n";
  out += section("Connection", entries, columns);
  return out +
         "\nExample:\n"
         "  baton --address 10.0.0.7:7470 queue list\n"
         "  baton queue list -a 10.0.0.7:7470 --tls-ca ca.pem\n"
         "  BATON_ADDRESS=10.0.0.7:7470 baton queue list\n";
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // A third of the letters may be wrong.
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    const std::size_t away = begins ? 1 : distance(word, candidate);
    if (away >= best_distance) continue;
    best = candidate;
    best_distance = away;
  }
  return best;
}

}  // namespace baton::cli
