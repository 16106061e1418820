#include "pipeline/yaml_leaves.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <set>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kLeavesMax = 10'000;
constexpr int kDepthMax = 16;

struct Walk {
  std::string_view name;
  std::vector<YamlLeaf> leaves{};

  [[nodiscard]] Error wrong(const YAML::Node& node, std::string_view why) const {
    return {Errc::invalid_argument, fmt::format("{}:{}: {}", name, node.Mark().line + 1, why)};
  }

  Status visit(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kDepthMax) return wrong(node, "is nested too deeply");
    if (leaves.size() >= kLeavesMax) return wrong(node, "is one value too many");
    if (node.IsMap()) return visit_map(node, path, depth);
    if (node.IsSequence()) {
      std::size_t place = 0;
      for (const YAML::Node& item : node) {
        BATON_TRY_STATUS(visit(item, fmt::format("{}[{}]", path, place++), depth + 1));
      }
      return {};
    }
    if (node.IsScalar()) leaves.push_back({path, node.Scalar(), node.Mark().line + 1});
    return {};  // An empty value: as if it were not there.
  }

  Status visit_map(const YAML::Node& node, const std::string& path, int depth) {
    std::set<std::string> seen;
    for (const auto& item : node) {
      if (!item.first.IsScalar()) return wrong(item.first, "is no name");
      const std::string& key = item.first.Scalar();
      if (!seen.insert(key).second) return wrong(item.first, fmt::format("{} is there twice", key));
      BATON_TRY_STATUS(visit(item.second, path.empty() ? key : path + "." + key, depth + 1));
    }
    return {};
  }
};

}  // namespace

Result<std::vector<YamlLeaf>> read_yaml(std::string_view text, std::string_view name) {
  if (text.size() > kBytesMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} has {} bytes; the limit is {}", name, text.size(), kBytesMax)};
  }
  try {  // yaml-cpp throws.
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1 || !documents[0].IsMap()) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} is not one document of 'name: value' lines", name)};
    }
    Walk walk{.name = name};
    BATON_TRY_STATUS(walk.visit(documents[0], "", 0));
    return std::move(walk.leaves);
  } catch (const YAML::Exception& problem) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}:{}: {}", name, problem.mark.line + 1, problem.msg)};
  } catch (const std::exception& problem) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} cannot be read: {}", name, problem.what())};
  }
}

}  // namespace baton::pipeline
