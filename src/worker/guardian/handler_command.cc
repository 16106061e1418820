#include "worker/guardian/handler_command.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace baton::worker {
namespace {

/// Replaces once from left to right: replaced text is not scanned again.
std::string expand(std::string_view word, const HandlerTask& task) {
  const std::array<std::pair<std::string_view, std::string>, 2> names = {
      {{"{partition}", fmt::format("{}", task.partition)},
       {"{epoch}", fmt::format("{}", task.epoch)}}};
  std::string out;
  while (!word.empty()) {
    const auto name = std::ranges::find_if(
        names, [&](const auto& known) { return word.starts_with(known.first); });
    if (name == names.end()) {
      out.push_back(word.front());
      word.remove_prefix(1);
    } else {
      out += name->second;
      word.remove_prefix(name->first.size());
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> expand_command(const std::vector<std::string>& words,
                                        const HandlerTask& task) {
  std::vector<std::string> out;
  out.reserve(words.size());
  for (const std::string& word : words) out.push_back(expand(word, task));
  return out;
}

std::vector<std::string> handler_environment(const std::vector<std::string>& inherited,
                                             std::string_view group, const HandlerTask& task) {
  const std::array<std::string, 3> ours = {fmt::format("BATON_GROUP={}", group),
                                           fmt::format("BATON_PARTITION={}", task.partition),
                                           fmt::format("BATON_EPOCH={}", task.epoch)};
  const auto is_ours = [&](std::string_view entry) {
    return std::ranges::any_of(ours, [&](std::string_view one) {
      return entry.starts_with(one.substr(0, one.find('=') + 1));
    });
  };
  std::vector<std::string> out;
  out.reserve(inherited.size() + ours.size());
  for (const std::string& entry : inherited) {
    if (!is_ours(entry)) out.push_back(entry);
  }
  out.insert(out.end(), ours.begin(), ours.end());
  return out;
}

}  // namespace baton::worker
