// The official JSON-Schema-Test-Suite, draft 2020-12: every file of it, in testdata/suite. A schema
// either compiles, and then every test of its group must have the suite's result, or it is refused,
// and then it is listed with the reason in testdata/suite_refused.txt. The few results that differ
// on purpose are in testdata/suite_deviations.txt. BATON_RECORD=1 writes both lists again.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/schema/json_document.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/validator.h"

namespace baton::schema {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string testdata(std::string_view name) { return fmt::format("{}/{}", BATON_TESTDATA, name); }

/// Whether docs/pipeline-schema.md lists it as not supported.
bool is_listed_reason(std::string_view error) {
  for (const auto* reason :
       {"\"unevaluatedProperties\" is not", "\"unevaluatedItems\" is not", "\"$anchor\" is not",
        "\"$dynamicAnchor\" is not", "\"$dynamicRef\" is not", "\"dependencies\" is not",
        "\"contentMediaType\" is not", "\"contentEncoding\" is not",
        "\"$id\" is supported at the root only", "\"$schema\" must be",
        "is not supported: it must be # or a pointer", "is not a keyword of JSON Schema",
        "\"#/examples/0\" is not a schema"}) {
    if (error.find(reason) != std::string_view::npos) return true;
  }
  return error.find("\"format\"") != std::string_view::npos && error.ends_with("is not supported");
}

struct Outcome {
  std::size_t files = 0;
  std::size_t groups = 0;
  std::size_t tests = 0;
  std::size_t refused_groups = 0;
  std::size_t refused_tests = 0;
  std::string refused;
  std::string deviations;
};

class Suite {
 public:
  void run(const fs::path& root) {
    std::set<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().extension() == ".json") files.insert(entry.path());
    }
    for (const fs::path& file : files) {
      name_ = fs::relative(file, root).string();
      run_file(read_file(file));
      ++outcome.files;
    }
  }

  Outcome outcome;

 private:
  void run_file(const std::string& text) {
    JsonDocument document;
    ASSERT_TRUE(document.read(text).has_value()) << name_;
    for (JsonIndex group = 1; group < document.root().next; group = document.node(group).next) {
      run_group(document, group);
    }
  }

  void run_group(const JsonDocument& document, JsonIndex group) {
    const std::string_view about = document.node(document.member(group, "description")).text();
    const JsonIndex tests = document.member(group, "tests");
    ++outcome.groups;
    outcome.tests += document.node(tests).count;
    const auto schema = Schema::compile(document.source(document.member(group, "schema")));
    if (!schema.has_value()) {
      // Recording must not hide a schema that is refused though everything in it is supported.
      EXPECT_TRUE(is_listed_reason(schema.error().text)) << name_ << " " << schema.error().text;
      ++outcome.refused_groups;
      outcome.refused_tests += document.node(tests).count;
      outcome.refused += fmt::format("{}: {}\n    {}\n", name_, about, schema.error().text);
      return;
    }
    Validator validator(*schema);
    for (JsonIndex test = tests + 1; test < document.node(tests).next;
         test = document.node(test).next) {
      const std::string data(document.source(document.member(test, "data")));
      const bool expected = document.node(document.member(test, "valid")).flag;
      const auto violation = validator.validate(data);
      if (violation.has_value() != expected) continue;
      // The only difference: formats are checked, not just annotated.
      EXPECT_TRUE(name_ == "format.json" && expected) << name_ << ": " << about << ": " << data;
      outcome.deviations +=
          fmt::format("{}: {}: {}\n    {} should be {}{}\n", name_, about,
                      document.node(document.member(test, "description")).text(), data,
                      expected ? "valid" : "invalid",
                      violation.has_value() ? fmt::format(", but: {}", to_string(*violation)) : "");
    }
  }

  std::string name_;
};

void expect_as_recorded(const std::string& name, const std::string& text) {
  if (std::getenv("BATON_RECORD") != nullptr) {
    std::ofstream(testdata(name), std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, read_file(testdata(name))) << name;
}

TEST(Suite, EveryTestPassesOrItsSchemaIsRefusedForAListedReason) {
  Suite suite;
  suite.run(testdata("suite"));
  const Outcome& outcome = suite.outcome;
  fmt::print("{} files: {} tests of {} schemas; {} tests of {} schemas are refused\n",
             outcome.files, outcome.tests, outcome.groups, outcome.refused_tests,
             outcome.refused_groups);
  expect_as_recorded("suite_refused.txt", outcome.refused);
  expect_as_recorded("suite_deviations.txt", outcome.deviations);
}

}  // namespace
}  // namespace baton::schema
