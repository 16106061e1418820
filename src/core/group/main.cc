#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "core/group/checker.h"
#include "core/group/client_checker.h"

/// `baton_sac_check`: the exhaustive search for the single active consumer. See --help.
namespace {

namespace checker = baton::checker;

constexpr std::string_view kUsage =
    "usage: baton_sac_check [--consumers N] [--cuts N] [--unsubscribes N] [--crashes N]\n"
    "                       [--restarts N] [--rejoins N] [--evaluations N] [--purges N]\n"
    "                       [--partition-index I]\n"
    "                       [--topology separate|shared-connection|shared-node] [--ask-offset]\n"
    "                       [--bug NAME] [--list-bugs]\n"
    "       baton_sac_check --clients [--strict] [--breaks N] [--consumers N] [--cuts N] ...:\n"
    "                       clients as the nodes of the lease rule\n"
    "Without --partition-index: -1, 0, 1, 2 and 3, one after the other.\n";

struct Arguments {
  checker::SearchOptions options;
  std::vector<int> partition_indexes{-1, 0, 1, 2, 3};
  bool list_bugs = false;
  bool clients = false;
  bool strict = false;
  std::uint8_t breaks = 0;
  bool good = true;
};

int number_of(std::string_view text, int most, bool& good) {
  int number = 0;
  good = good && baton::read_all(text, number) && number >= -1 && number <= most;
  return number;
}

checker::Bug bug_of(std::string_view name, bool& good) {
  for (const checker::BugName& known : checker::kBugs) {
    if (known.name == name) return known.bug;
  }
  good = false;
  return checker::Bug::none;
}

checker::Topology topology_of(std::string_view name, bool& good) {
  if (name == "shared-connection") return checker::Topology::shared_connection;
  if (name == "shared-node") return checker::Topology::shared_node;
  good = good && name == "separate";
  return checker::Topology::separate;
}

std::uint8_t* budget_of(std::string_view word, checker::SearchOptions& options) {
  if (word == "--cuts") return &options.cuts;
  if (word == "--unsubscribes") return &options.unsubscribes;
  if (word == "--crashes") return &options.crashes;
  if (word == "--restarts") return &options.restarts;
  if (word == "--rejoins") return &options.rejoins;
  if (word == "--evaluations") return &options.evaluations;
  if (word == "--purges") return &options.purges;
  return nullptr;
}

void take(std::string_view word, std::string_view value, Arguments& arguments) {
  constexpr int kBudgetMax = 9;
  if (word == "--breaks") {
    arguments.breaks = static_cast<std::uint8_t>(number_of(value, kBudgetMax, arguments.good));
  } else if (std::uint8_t* budget = budget_of(word, arguments.options)) {
    *budget = static_cast<std::uint8_t>(number_of(value, kBudgetMax, arguments.good));
  } else if (word == "--consumers") {
    const int count = number_of(value, 4, arguments.good);
    arguments.good = arguments.good && count >= 1;
    arguments.options.consumers = static_cast<std::uint32_t>(count);
  } else if (word == "--partition-index") {
    arguments.partition_indexes = {number_of(value, 1000, arguments.good)};
  } else if (word == "--topology") {
    arguments.options.topology = topology_of(value, arguments.good);
  } else if (word == "--bug") {
    arguments.options.bug = bug_of(value, arguments.good);
  } else {
    arguments.good = false;
  }
}

Arguments parse(std::span<char*> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--list-bugs") {
      arguments.list_bugs = true;
    } else if (word == "--clients") {
      arguments.clients = true;
    } else if (word == "--strict") {
      arguments.strict = true;
    } else if (word == "--ask-offset") {
      arguments.options.ask_offset = true;
    } else {
      ++i;
      take(word, i < words.size() ? words[i] : "", arguments);
    }
  }
  return arguments;
}

int list_bugs() {
  for (const checker::BugName& bug : checker::kBugs) fmt::print("{:<34} {}\n", bug.name, bug.text);
  return 0;
}

checker::SearchResult search(const Arguments& arguments) {
  const checker::SearchOptions& options = arguments.options;
  if (!arguments.clients) return checker::search(options);
  return checker::search(checker::ClientSearchOptions{
      .sessions = options.consumers,
      .partition_index = options.partition_index,
      .handover = arguments.strict ? baton::Handover::strict : baton::Handover::at_once,
      .cuts = options.cuts,
      .breaks = arguments.breaks,
      .crashes = options.crashes,
      .unsubscribes = options.unsubscribes,
      .restarts = options.restarts,
      .evaluations = options.evaluations});
}

bool run(const Arguments& arguments) {
  const checker::SearchResult result = search(arguments);
  fmt::print("partition index {:>2}: {} states, {} transitions, depth {}: {}\n",
             arguments.options.partition_index.value, result.states, result.transitions,
             result.depth, result.failure.value_or("never two, never stuck, balanced"));
  for (std::size_t i = 0; i < result.trace.size(); ++i) {
    fmt::print("{:>4}. {}\n", i + 1, result.trace[i]);
  }
  return !result.failure.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = parse(std::span(argv, static_cast<std::size_t>(argc)));
  if (!arguments.good) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  if (arguments.list_bugs) return list_bugs();
  bool good = true;
  for (const int index : arguments.partition_indexes) {
    arguments.options.partition_index = baton::PartitionIndex{index};
    good = run(arguments) && good;
  }
  return good ? 0 : 1;
}
