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

/// How often a record has been sent back from the dead letters.
inline constexpr std::string_view kRedrivesHeader = "baton-redrives";

/// A record that can never be written, with everything needed to find out why.
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

  /// pipeline/source/partition/offset: the same record always gives the same id.
  [[nodiscard]] std::string id() const;
  /// What is kept besides the record's own headers.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers() const;
};

/// Where dead letters are written. Thread-safe.
class DeadLetterTarget {
 public:
  DeadLetterTarget() = default;
  DeadLetterTarget(const DeadLetterTarget&) = delete;
  DeadLetterTarget& operator=(const DeadLetterTarget&) = delete;
  virtual ~DeadLetterTarget() = default;

  /// When it returns, all letters are durable; after an error some may be. Writing a letter again
  /// is allowed.
  virtual Status write(std::span<const DeadLetter> letters) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
};

}  // namespace baton::pipeline
