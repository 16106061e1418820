#include "pipeline/app/check_report.h"

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

std::string to_sentence(const Finding& finding) {
  switch (finding.kind) {
    case Finding::Kind::missing:
    case Finding::Kind::made:
      return fmt::format("{} {}{}{}", finding.kind == Finding::Kind::made ? "made" : "would make",
                         finding.what, finding.what.empty() ? "" : " ", finding.name);
    case Finding::Kind::warning: return "warning: " + finding.text;
    case Finding::Kind::fact: break;
  }
  return finding.text;
}

}  // namespace

std::vector<std::string> to_sentences(const CheckReport& report) {
  std::vector<std::string> sentences;
  for (const Findings& findings : {report.source, report.sink}) {
    for (const Finding& finding : findings) sentences.push_back(to_sentence(finding));
  }
  if (report.dead_letters.has_value()) {
    const Finding& letters = *report.dead_letters;
    sentences.push_back(fmt::format(
        "{} the {} {}", letters.kind == Finding::Kind::made ? "created" : "would create",
        letters.what, letters.name));
  }
  sentences.push_back(fmt::format("writes to {}, {}", report.sink_name,
                                  report.exactly_once ? "exactly_once_effect" : "at_least_once"));
  sentences.push_back(fmt::format("what cannot be written goes to {}", report.dead_letters_name));
  return sentences;
}

}  // namespace baton::pipeline
