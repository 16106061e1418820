// The guides' examples, run as a reader would type them: each `$` line of a console block must end
// with 0, and print every line that follows it in the block somewhere.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

struct Example {
  std::string command;
  std::vector<std::string> printed;
};

std::vector<Example> examples_of(const std::string& text) {
  std::vector<Example> examples;
  bool inside = false;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("```")) {
      inside = line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      examples.push_back({line.substr(2), {}});
    } else if (inside && !examples.empty()) {
      examples.back().printed.push_back(line);
    }
  }
  return examples;
}

class Guide : public testing::TestWithParam<const char*> {};

TEST_P(Guide, ItsExamplesDoWhatItSays) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  const std::filesystem::path docs =
      std::filesystem::path(paths::kTests) / ".." / "docs" / GetParam();
  const std::vector<Example> examples = examples_of(read_file(docs));
  ASSERT_FALSE(examples.empty()) << docs;
  const std::string folder = std::filesystem::path(binary()).parent_path().string();
  const TempFolder here;  // The files that the examples write are removed.
  for (const Example& example : examples) {
    const CommandResult result = run_command(
        {"/bin/sh", "-c",
         fmt::format("cd {} && PATH={}:$PATH BATON_ADDRESS={} && export PATH BATON_ADDRESS && {}",
                     here.path().string(), folder, broker.address(), example.command)});
    EXPECT_EQ(result.exit_code, 0) << example.command << "\n" << result.out << result.err;
    for (const std::string& line : example.printed) {
      EXPECT_NE(result.out.find(line), std::string::npos)
          << example.command << "\ndid not print: " << line << "\nbut:\n"
          << result.out;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, Guide,
                         testing::Values("start.md", "queues.md", "streams.md", "kv.md",
                                         "partition-leases.md", "pipelines.md"));

}  // namespace
}  // namespace baton::e2e
