#include "pipeline/schema/json_values.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "pipeline/schema/decimal.h"

namespace baton::schema {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed = (a ^ (b >> 32U)) * 0x9e3779b97f4a7c15ULL + b;
  mixed = (mixed ^ (mixed >> 29U)) * 0xbf58476d1ce4e5b9ULL;
  return mixed ^ (mixed >> 32U);
}

bool equal_numbers(const JsonNode& a, const JsonNode& b) {
  if (a.is_small() && b.is_small()) return a.small() == b.small();
  return Decimal::parse(a.text()) == Decimal::parse(b.text());
}

/// Compares two nodes without their children.
bool equal_nodes(const JsonNode& a, const JsonNode& b) {
  const bool both_texts = (a.kind == JsonKind::string || a.kind == JsonKind::key) &&
                          (b.kind == JsonKind::string || b.kind == JsonKind::key);
  if (both_texts) return a.text() == b.text();
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case JsonKind::boolean: return a.flag == b.flag;
    case JsonKind::number: return equal_numbers(a, b);
    case JsonKind::array:
    case JsonKind::object: return a.count == b.count;
    default: return true;
  }
}

/// The pairs of values that are still to be compared.
class Comparison {
 public:
  Comparison(const JsonDocument& a, const JsonDocument& b, std::uint64_t& steps)
      : a_(a), b_(b), steps_(steps) {}

  bool run(JsonIndex at_a, JsonIndex at_b) {
    pairs_.emplace_back(at_a, at_b);
    while (!pairs_.empty()) {
      const auto [one, other] = pairs_.back();
      pairs_.pop_back();
      if (!take_step() || !equal_nodes(a_.node(one), b_.node(other))) return false;
      if (a_.node(one).kind == JsonKind::array) elements(one, other);
      if (a_.node(one).kind == JsonKind::object && !members(one, other)) return false;
    }
    return true;
  }

 private:
  void elements(JsonIndex array_a, JsonIndex array_b) {
    JsonIndex other = array_b + 1;
    for (JsonIndex one = array_a + 1; one < a_.node(array_a).next; one = a_.node(one).next) {
      pairs_.emplace_back(one, other);
      other = b_.node(other).next;
    }
  }
  /// False if a key of one object is not in the other. Both have the same number of members.
  bool members(JsonIndex object_a, JsonIndex object_b) {
    JsonIndex guess = object_b + 1;  // Usually the members are in the same order.
    for (JsonIndex key = object_a + 1; key < a_.node(object_a).next; key = a_.node(key + 1).next) {
      JsonIndex other = guess;
      while (!same_key(key, other)) {
        other = b_.node(other + 1).next;
        if (other == b_.node(object_b).next) other = object_b + 1;
        if (other == guess || !take_step()) return false;
      }
      pairs_.emplace_back(key + 1, other + 1);
      guess = b_.node(other + 1).next;
      if (guess == b_.node(object_b).next) guess = object_b + 1;
    }
    return true;
  }
  bool same_key(JsonIndex one, JsonIndex other) {
    const JsonNode& a = a_.node(one);
    const JsonNode& b = b_.node(other);
    return a.word == b.word && a.text() == b.text();
  }
  bool take_step() {
    if (steps_ == 0) return false;
    --steps_;
    return true;
  }

  const JsonDocument& a_;
  const JsonDocument& b_;
  std::uint64_t& steps_;
  std::vector<std::pair<JsonIndex, JsonIndex>> pairs_;
};

}  // namespace

bool equal(const JsonDocument& a, JsonIndex at_a, const JsonDocument& b, JsonIndex at_b,
           std::uint64_t& steps) {
  const JsonNode& one = a.node(at_a);
  const bool has_children = one.count > 0 && (one.kind == JsonKind::array ||  //
                                              one.kind == JsonKind::object);
  if (!has_children) return equal_nodes(one, b.node(at_b));
  return Comparison(a, b, steps).run(at_a, at_b);
}

std::uint64_t ValueHasher::hash(const JsonDocument& document, JsonIndex at) {
  const JsonIndex end = document.node(at).next;
  hashes_.resize(end - at);
  // Children come after their parents: from the end, the hashes of the children are always known.
  for (JsonIndex node = end; node-- > at;) hashes_[node - at] = hash_node(document, node, at);
  return hashes_[0];
}

std::uint64_t ValueHasher::hash_node(const JsonDocument& document, JsonIndex at, JsonIndex first) {
  const JsonNode& node = document.node(at);
  const auto kind = static_cast<std::uint64_t>(node.kind);
  switch (node.kind) {
    case JsonKind::null: return mix(kind, 0);
    case JsonKind::boolean: return mix(kind, node.flag ? 1 : 0);
    case JsonKind::number: {
      const Decimal number = Decimal::parse(node.text());
      return mix(hash64(number.digits),
                 mix(number.negative ? 1 : 0, static_cast<std::uint64_t>(number.exponent)));
    }
    case JsonKind::string:
    case JsonKind::key: return hash64(node.text());
    case JsonKind::array: {
      std::uint64_t sum = mix(kind, node.count);
      for (JsonIndex child = at + 1; child < node.next; child = document.node(child).next) {
        sum = mix(sum, hashes_[child - first]);
      }
      return sum;
    }
    case JsonKind::object: {
      std::uint64_t sum = mix(kind, node.count);
      for (JsonIndex key = at + 1; key < node.next; key = document.node(key + 1).next) {
        sum += mix(hashes_[key - first], hashes_[key + 1 - first]);
      }
      return sum;
    }
  }
  return 0;
}

}  // namespace baton::schema
