#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pipeline/engine/record.h"
#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// On a record that was among the dead letters before: how often.
inline constexpr std::string_view kRedrivesHeader = "baton-redrives";

/// A record that will never go in, with all one needs to find out why.
struct DeadLetter {
  const Record* record = nullptr;
  flow::ErrorClass error_class = flow::ErrorClass::poison;
  std::string code{};
  std::string text{};
  std::string stage{};
  std::uint32_t attempts = 0;
  std::chrono::milliseconds first_seen{};  // Since 1970.
  std::chrono::milliseconds last_seen{};
  std::string source{};
  std::string pipeline{};
  std::uint32_t redrives = 0;

  /// pipeline/source/partition/offset: the same record again is the same letter again.
  [[nodiscard]] std::string id() const;
  /// What is kept beside the record's own headers.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers() const;
};

/// Where they go. Thread-safe.
class DeadLetterTarget {
 public:
  DeadLetterTarget() = default;
  DeadLetterTarget(const DeadLetterTarget&) = delete;
  DeadLetterTarget& operator=(const DeadLetterTarget&) = delete;
  virtual ~DeadLetterTarget() = default;

  /// All of them are kept for good when it returns; an error means that some may be. Writing one
  /// again is fine.
  virtual Status write(std::span<const DeadLetter> letters) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
};

}  // namespace baton::pipeline
