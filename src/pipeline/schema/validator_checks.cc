#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pipeline/schema/validator.h"

// Checks of a single value, which need no frame.
namespace baton::schema {
namespace {

constexpr std::array<TypeSet, 7> kTypeOfKind = {kNull,  kBoolean, kNumber, kString,
                                                kArray, kObject,  kString};

std::string_view keyword_of(Bound::Kind kind) {
  constexpr std::array<std::string_view, 4> kKeywords = {"minimum", "exclusiveMinimum", "maximum",
                                                         "exclusiveMaximum"};
  return kKeywords.at(std::to_underlying(kind));
}

/// The complaint about a number that violates the bound.
std::string_view complaint_of(Bound::Kind kind) {
  constexpr std::array<std::string_view, 4> kComplaints = {"is less than", "is not greater than",
                                                           "is greater than", "is not less than"};
  return kComplaints.at(std::to_underlying(kind));
}

template <class Number>
bool keeps(Bound::Kind kind, const Number& value, const Number& bound) {
  switch (kind) {
    case Bound::Kind::minimum: return !(value < bound);
    case Bound::Kind::exclusive_minimum: return bound < value;
    case Bound::Kind::maximum: return !(bound < value);
    case Bound::Kind::exclusive_maximum: return value < bound;
  }
  return false;
}

/// A code point has one to four bytes: most texts need not be counted.
bool is_shorter(std::string_view text, std::size_t length) {
  if (text.size() < length) return true;
  return length > 1 && text.size() / 4 < length && code_points(text) < length;
}

}  // namespace

bool Validator::check_here(const Subschema& schema, JsonIndex at) {
  if (schema.never) {
    return violates(at, "false", [] { return "no value is allowed here"; });
  }
  if (schema.types != kAnyType && !check_type(schema, at)) return false;
  if (!schema.values.empty() && !check_values(schema, at)) return false;
  switch (document_.node(at).kind) {
    case JsonKind::number: return schema.number == nullptr || check_number(*schema.number, at);
    case JsonKind::string:
    case JsonKind::key: return schema.text == nullptr || check_text(*schema.text, at);
    case JsonKind::array: return schema.array == nullptr || check_array(*schema.array, at);
    case JsonKind::object: return schema.object == nullptr || check_object(*schema.object, at);
    default: return true;
  }
}

bool Validator::is_integer(const JsonNode& node) {
  if (node.is_small()) return true;
  number_.assign(node.text());
  return number_.is_integer();
}

bool Validator::check_type(const Subschema& schema, JsonIndex at) {
  const JsonNode& node = document_.node(at);
  const TypeSet common = schema.types & kTypeOfKind[std::to_underlying(node.kind)];
  if (common != 0 && common != kInteger) return true;
  if (common == kInteger && is_integer(node)) return true;
  return violates(at, "type", [&] {
    if (common == kInteger) return fmt::format("{} is not an integer", excerpt(node.text()));
    return fmt::format("the value is {}; it must be {}", to_string(node.kind),
                       to_string(schema.types));
  });
}

bool Validator::check_values(const Subschema& schema, JsonIndex at) {
  for (const auto& values : schema.values) {
    if (values->contains(document_, at, steps_)) continue;
    return violates(at, values->keyword(), [&] {
      const bool constant = values->keyword() == "const";
      return fmt::format("{} is not {}{}", excerpt(document_.source(at)), constant ? "" : "one of ",
                         excerpt(constant ? values->first() : values->text()));
    });
  }
  return true;
}

bool Validator::check_number(const NumberRules& rules, JsonIndex at) {
  const JsonNode& node = document_.node(at);
  bool parsed = false;
  const auto exactly = [&]() -> const Decimal& {
    if (!parsed) number_.assign(node.text());
    parsed = true;
    return number_;
  };
  for (const Bound& bound : rules.bounds) {
    const bool good = node.is_small() && bound.small.has_value()
                          ? keeps(bound.kind, node.small(), *bound.small)
                          : keeps(bound.kind, exactly(), bound.value);
    if (good) continue;
    return violates(at, keyword_of(bound.kind), [&] {
      return fmt::format("{} {} {}", excerpt(node.text()), complaint_of(bound.kind), bound.written);
    });
  }
  if (!rules.multiple_of.has_value() || exactly().is_multiple_of(*rules.multiple_of)) return true;
  return violates(at, "multipleOf", [&] {
    return fmt::format("{} is not a multiple of {}", excerpt(node.text()),
                       rules.multiple_of_written);
  });
}

bool Validator::check_text(const TextRules& rules, JsonIndex at) {
  const std::string_view text = document_.node(at).text();
  charge(text.size() / kBytesPerStepCharged);
  if (is_shorter(text, rules.length_min)) {
    return violates(at, "minLength", [&] {
      return fmt::format("the text has {} characters; it must have at least {}", code_points(text),
                         rules.length_min);
    });
  }
  if (rules.length_max < text.size() && code_points(text) > rules.length_max) {
    return violates(at, "maxLength", [&] {
      return fmt::format("the text has {} characters; it must have at most {}", code_points(text),
                         rules.length_max);
    });
  }
  if (rules.pattern.has_value() && !rules.pattern->matches(text)) {
    return violates(at, "pattern", [&] {
      return fmt::format("\"{}\" does not match {}", excerpt(text),
                         excerpt(rules.pattern->source()));
    });
  }
  if (rules.format.has_value() && !matches(*rules.format, text)) {
    return violates(at, "format", [&] {
      return fmt::format("\"{}\" does not have the format {}", excerpt(text),
                         to_string(*rules.format));
    });
  }
  return true;
}

bool Validator::check_array(const ArrayRules& rules, JsonIndex at) {
  const std::size_t count = document_.node(at).count;
  if (count < rules.count_min) {
    return violates(at, "minItems", [&] {
      return fmt::format("the array has {} elements; it must have at least {}", count,
                         rules.count_min);
    });
  }
  if (count > rules.count_max) {
    return violates(at, "maxItems", [&] {
      return fmt::format("the array has {} elements; it must have at most {}", count,
                         rules.count_max);
    });
  }
  return !rules.unique || check_unique(at);
}

bool Validator::check_unique(JsonIndex at) {
  hashes_.clear();
  const JsonNode& array = document_.node(at);
  charge(array.next - at);
  for (JsonIndex element = at + 1; element < array.next; element = document_.node(element).next) {
    hashes_.emplace_back(hasher_.hash(document_, element), element);
  }
  std::ranges::sort(hashes_);
  for (std::size_t i = 1; i < hashes_.size(); ++i) {
    for (std::size_t j = i; j > 0 && hashes_[j - 1].first == hashes_[i].first; --j) {
      if (steps_ == 0) return false;
      --steps_;
      const JsonIndex first = hashes_[j - 1].second;
      const JsonIndex second = hashes_[i].second;
      if (!equal(document_, first, document_, second, steps_)) continue;
      return violates(second, "uniqueItems", [&] {
        return fmt::format("the element {} is there before, at {}",
                           excerpt(document_.source(second)), document_.pointer(first));
      });
    }
  }
  return true;
}

bool Validator::check_object(const ObjectRules& rules, JsonIndex at) {
  const std::size_t count = document_.node(at).count;
  if (count < rules.count_min) {
    return violates(at, "minProperties", [&] {
      return fmt::format("the object has {} properties; it must have at least {}", count,
                         rules.count_min);
    });
  }
  if (count > rules.count_max) {
    return violates(at, "maxProperties", [&] {
      return fmt::format("the object has {} properties; it must have at most {}", count,
                         rules.count_max);
    });
  }
  return true;
}

}  // namespace baton::schema
