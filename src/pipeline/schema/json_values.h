#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schema/json_document.h"

namespace baton::schema {

/// Whether two values are equal by JSON Schema's rules: 1 equals 1.0, and the order of members does
/// not matter. Each comparison of two nodes takes one of `steps`; if none is left the result is
/// false, and the caller must not trust it.
bool equal(const JsonDocument& a, JsonIndex at_a, const JsonDocument& b, JsonIndex at_b,
           std::uint64_t& steps);

/// Hashes that are the same for equal() values. A reused object stops allocating.
class ValueHasher {
 public:
  std::uint64_t hash(const JsonDocument& document, JsonIndex at);

 private:
  std::uint64_t hash_node(const JsonDocument& document, JsonIndex at, JsonIndex first);

  std::vector<std::uint64_t> hashes_;  // Of the nodes of one value.
};

}  // namespace baton::schema
