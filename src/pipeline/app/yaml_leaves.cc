#include "pipeline/app/yaml_leaves.h"

#include <exception>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/yaml_hint.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kLeavesMax = 10'000;
constexpr int kDepthMax = 16;

/// Visits a document in the order of the text, with an explicit stack.
class Walk {
 public:
  explicit Walk(std::string_view name) : name_(name) {}

  Result<std::vector<YamlLeaf>> run(const YAML::Node& root) {
    todo_.push_back({root, ""});
    while (!todo_.empty()) {
      const Place place = std::move(todo_.back());
      todo_.pop_back();
      BATON_TRY_STATUS(visit(place));
    }
    return std::move(leaves_);
  }

 private:
  struct Place {
    YAML::Node node;
    std::string path;
    int depth = 0;
    int line = 0;
  };

  [[nodiscard]] Error wrong(const YAML::Node& node, std::string_view why) const {
    return {Errc::invalid_argument, fmt::format("{}:{}: {}", name_, node.Mark().line + 1, why)};
  }

  Status visit(const Place& place) {
    const YAML::Node& node = place.node;
    if (place.depth > kDepthMax) return wrong(node, "is nested too deeply");
    if (leaves_.size() + todo_.size() >= kLeavesMax) return wrong(node, "is one value too many");
    std::vector<Place> within;
    if (!place.path.empty() && !node.IsScalar() && node.size() == 0) {
      // An absent value has no line, so it gets the line of its name.
      leaves_.push_back({place.path, "", place.line, true});
    } else if (node.IsMap()) {
      BATON_TRY_STATUS(visit_map(place, within));
    } else if (node.IsSequence()) {
      std::size_t number = 0;
      for (const YAML::Node& item : node) {
        within.push_back(
            {item, fmt::format("{}[{}]", place.path, number++), place.depth + 1, place.line});
      }
    } else {
      leaves_.push_back({place.path, node.Scalar(), node.Mark().line + 1});
    }
    // Moved one by one: assigning a node, as std::reverse does, would change the document.
    for (; !within.empty(); within.pop_back()) todo_.push_back(std::move(within.back()));
    return {};
  }

  Status visit_map(const Place& place, std::vector<Place>& within) {
    std::set<std::string> seen;
    for (const auto& item : place.node) {
      if (!item.first.IsScalar()) return wrong(item.first, "is not a name");
      const std::string& key = item.first.Scalar();
      if (!seen.insert(key).second) return wrong(item.first, fmt::format("{} is there twice", key));
      const std::string path = place.path.empty() ? key : fmt::format("{}.{}", place.path, key);
      within.push_back({item.second, path, place.depth + 1, item.first.Mark().line + 1});
    }
    return {};
  }

  std::string_view name_;
  std::vector<Place> todo_;  // The last element is the next to visit.
  std::vector<YamlLeaf> leaves_;
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
    return Walk(name).run(documents[0]);
  } catch (const YAML::Exception& problem) {
    return Error{Errc::invalid_argument,
                 fmt::format("{}:{}: {}", name, problem.mark.line + 1,
                             explain_yaml(text, problem.mark.line + 1, problem.msg))};
  } catch (const std::exception& problem) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} cannot be read: {}", name, problem.what())};
  }
}

}  // namespace baton::pipeline
