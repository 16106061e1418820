#include "pipeline/schema/schema_nodes.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/assert.h"
#include "pipeline/schema/json_values.h"

namespace baton::schema {

std::size_t NameTable::add(std::string_view name) {
  const std::uint64_t hash = name_hash(name);
  if (const std::size_t known = find(name, hash); known != kNone) return known;
  names_.emplace_back(name);
  hashes_.push_back(hash);
  rehash();
  return names_.size() - 1;
}

void NameTable::rehash() {
  const std::size_t wanted = std::bit_ceil(names_.size() * 2);
  const bool grown = slots_.size() < wanted;
  if (grown) slots_.assign(wanted, 0);
  // Only the last name is new, unless the table has grown.
  for (std::size_t place = grown ? 0 : names_.size() - 1; place < names_.size(); ++place) {
    std::size_t slot = hashes_[place] & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<std::uint32_t>(place + 1);
  }
}

ValueSet::ValueSet(std::string_view keyword, std::string values)
    : keyword_(keyword), text_(std::move(values)), document_(kSchemaBytesMax + 2) {
  // The text is a part of a document that was read before.
  const Status read = document_.read(text_);
  BATON_ASSERT(read.has_value() && document_.root().kind == JsonKind::array);
  document_.settle();
  for (JsonIndex at = 1; at < document_.root().next; at = document_.node(at).next) {
    if (document_.node(at).kind == JsonKind::string) {
      strings_.add(document_.node(at).text());
    } else {
      others_.push_back(at);
    }
  }
}

bool ValueSet::contains(const JsonDocument& document, JsonIndex at, std::uint64_t& steps) const {
  const JsonNode& node = document.node(at);
  if (node.kind == JsonKind::string || node.kind == JsonKind::key) {
    return strings_.find(node.text(), name_hash(node.text())) != NameTable::kNone;
  }
  return std::ranges::any_of(
      others_, [&](JsonIndex other) { return equal(document, at, document_, other, steps); });
}

std::string to_string(TypeSet types) {
  constexpr std::array<std::pair<TypeSet, std::string_view>, 7> kNames = {{{kNumber, "number"},
                                                                           {kInteger, "integer"},
                                                                           {kString, "string"},
                                                                           {kBoolean, "boolean"},
                                                                           {kObject, "object"},
                                                                           {kArray, "array"},
                                                                           {kNull, "null"}}};
  std::string out;
  for (const auto& [bits, name] : kNames) {
    if ((types & bits) != bits) continue;
    if (!out.empty()) out += " or ";
    out += name;
    types = static_cast<TypeSet>(types & ~bits);
  }
  return out;
}

}  // namespace baton::schema
