#include "pipeline/engine/dead_letter.h"

#include <fmt/format.h>

namespace baton::pipeline {

std::string DeadLetter::id() const {
  return fmt::format("{}/{}/{}/{}", pipeline, source, record->partition, record->offset);
}

std::vector<std::pair<std::string, std::string>> DeadLetter::headers() const {
  return {{"baton-class", std::string(flow::to_string(error_class))},
          {"baton-code", code},
          {"baton-message", text},
          {"baton-stage", stage},
          {"baton-attempts", std::to_string(attempts)},
          {"baton-first-seen-ms", std::to_string(first_seen.count())},
          {"baton-last-seen-ms", std::to_string(last_seen.count())},
          {"baton-source", source},
          {"baton-partition", std::to_string(record->partition)},
          {"baton-offset", std::to_string(record->offset)},
          {"baton-pipeline", pipeline},
          {std::string(kRedrivesHeader), std::to_string(redrives)}};
}

}  // namespace baton::pipeline
