#include "pipeline/orders/order_generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "pipeline/orders/order_text.h"

namespace baton::orders {
namespace {

constexpr std::uint64_t kParts = 1000;
constexpr std::uint64_t kDuplicateDistanceMax = 10'000;
constexpr int kDuplicateTries = 32;

/// One way to make a field invalid: the text in its place, and the keyword that must object.
struct Breach {
  std::string_view what;
  std::string_view json;
  std::string_view keyword;
  std::string_view below{};  // Where the violation is reported, if not at the field itself.
};

/// How a field of each kind can be invalid, besides being missing.
std::span<const Breach> breaches_of(FieldKind kind) {
  static constexpr auto kText = std::to_array<Breach>(
      {{"a number", "7", "type"}, {"null", "null", "type"}, {"empty", "\"\"", "minLength"}});
  static constexpr auto kOptional =
      std::to_array<Breach>({{"a number", "7", "type"}, {"null", "null", "type"}});
  static constexpr auto kPhone =
      std::to_array<Breach>({{"a number", "79991234567", "type"},
                             {"without a plus", "\"9720000000\"", "pattern"},
                             {"begins with 0", "\"+0720000000\"", "pattern"},
                             {"16 digits", "\"+1234567890123456\"", "pattern"},
                             {"with letters", "\"+1800FLOWERS\"", "pattern"},
                             {"a line after it", "\"+9720000000\\n\"", "pattern"}});
  static constexpr auto kEmail =
      std::to_array<Breach>({{"true", "true", "type"},
                             {"without an at sign", "\"user.example.org\"", "format"},
                             {"two dots", "\"us..er@example.org\"", "format"},
                             {"no domain", "\"user@\"", "format"}});
  static constexpr auto kCurrency = std::to_array<Breach>({{"a number", "840", "enum"},
                                                           {"lower case", "\"usd\"", "enum"},
                                                           {"unknown", "\"ZZZ\"", "enum"}});
  static constexpr auto kTimestamp =
      std::to_array<Breach>({{"seconds", "1637907739", "type"},
                             {"without an offset", "\"2021-11-26T06:22:19\"", "format"},
                             {"day 30 of February", "\"2021-02-30T06:22:19Z\"", "format"},
                             {"a date only", "\"2021-11-26\"", "format"}});
  static constexpr auto kAmount = std::to_array<Breach>({{"a text", "\"100\"", "type"},
                                                         {"a fraction", "100.5", "type"},
                                                         {"negative", "-1", "minimum"},
                                                         {"huge", "9007199254740992", "maximum"}});
  static constexpr auto kPositive = std::to_array<Breach>({{"a text", "\"1\"", "type"},
                                                           {"a fraction", "1.25", "type"},
                                                           {"zero", "0", "minimum"},
                                                           {"huge", "1e30", "maximum"}});
  static constexpr auto kPercent = std::to_array<Breach>({{"a text", "\"30\"", "type"},
                                                          {"a fraction", "12.5", "type"},
                                                          {"negative", "-1", "minimum"},
                                                          {"above 100", "101", "maximum"}});
  static constexpr auto kInteger =
      std::to_array<Breach>({{"a text", "\"202\"", "type"},
                             {"a fraction", "202.5", "type"},
                             {"hugely negative", "-9007199254740992", "minimum"},
                             {"huge", "9007199254740992", "maximum"}});
  static constexpr auto kObject = std::to_array<Breach>(
      {{"null", "null", "type"}, {"a list", "[]", "type"}, {"empty", "{}", "required"}});
  static constexpr auto kList = std::to_array<Breach>({{"null", "null", "type"},
                                                       {"an object", "{}", "type"},
                                                       {"empty", "[]", "minItems"},
                                                       {"a number in it", "[7]", "type", "/0"}});
  switch (kind) {
    case FieldKind::text: return kText;
    case FieldKind::optional: return kOptional;
    case FieldKind::phone: return kPhone;
    case FieldKind::email: return kEmail;
    case FieldKind::currency: return kCurrency;
    case FieldKind::timestamp: return kTimestamp;
    case FieldKind::amount: return kAmount;
    case FieldKind::positive: return kPositive;
    case FieldKind::percent: return kPercent;
    case FieldKind::integer: return kInteger;
    case FieldKind::object: return kObject;
    case FieldKind::list: return kList;
  }
  return {};
}

constexpr auto kObjects = std::to_array<OrderObject>(
    {OrderObject::order, OrderObject::delivery, OrderObject::payment, OrderObject::item});

using Flaws = std::vector<std::pair<OrderFlaw, FieldChange>>;

void add_flaws(Flaws& out, OrderObject object, const OrderField& field) {
  const std::string pointer(pointer_of(object));
  const std::string path = fmt::format("{}{}", path_of(object), field.name);
  if (field.kind != FieldKind::optional) {
    out.emplace_back(OrderFlaw{path + ": missing", pointer, "required"},
                     FieldChange{.object = object, .field = field.name, .json = {}});
  }
  for (const Breach& breach : breaches_of(field.kind)) {
    out.emplace_back(OrderFlaw{fmt::format("{}: {}", path, breach.what),
                               fmt::format("{}/{}{}", pointer, field.name, breach.below),
                               std::string(breach.keyword)},
                     FieldChange{.object = object, .field = field.name, .json = breach.json});
  }
}

/// Every way in which an order can break one rule.
Flaws all_flaws() {
  Flaws out;
  for (const std::string_view json : {"null", "[]", "\"order\"", "12"}) {
    out.emplace_back(OrderFlaw{fmt::format("the order: {}", json), "", "type"},
                     FieldChange{.object = OrderObject::order, .field = kWholeOrder, .json = json});
  }
  for (const OrderObject object : kObjects) {
    out.emplace_back(
        OrderFlaw{fmt::format("{}{}: unknown", path_of(object), kUnknownField),
                  fmt::format("{}/{}", pointer_of(object), kUnknownField), "additionalProperties"},
        FieldChange{.object = object, .field = {}, .json = {}});
    for (const OrderField& field : fields_of(object)) add_flaws(out, object, field);
  }
  return out;
}

/// A part of every order, and its replacement.
struct Replacement {
  std::string_view name;
  std::string_view from;
  std::string_view to;
};
constexpr std::string_view kEntry = "\"entry\":\"WBIL\"";
constexpr auto kReplacements = std::to_array<Replacement>({
    {"single quotes", kEntry, "'entry':'WBIL'"},
    {"a key without quotes", kEntry, "entry:\"WBIL\""},
    {"no colon", kEntry, "\"entry\" \"WBIL\""},
    {"an unknown escape", kEntry, "\"entry\":\"WB\\xIL\""},
    {"a line end in a string", kEntry, "\"entry\":\"WB\nIL\""},
    {"not UTF-8", kEntry, "\"entry\":\"WB\xc3(IL\""},
    {"half a surrogate pair", kEntry, "\"entry\":\"WB\\ud83dIL\""},
    {"a key twice", kEntry, "\"entry\":\"WBIL\",\"entry\":\"WBIL\""},
    {"a leading zero", "\"sm_id\":", "\"sm_id\":0"},
    {"NaN", "\"custom_fee\":0", "\"custom_fee\":NaN"},
    {"a comment", "{", "{/* an order */"},
    {"no opening brace", "{", ""},
    {"a byte order mark", "{", "\xef\xbb\xbf{"},
});
constexpr auto kOthers =
    std::to_array<std::string_view>({"empty", "cut off", "one byte short", "a trailing comma",
                                     "text after the end", "two documents", "too deep"});
constexpr auto kBreaks = [] {
  std::array<std::string_view, kReplacements.size() + kOthers.size()> names;
  for (std::size_t i = 0; i < kReplacements.size(); ++i) names[i] = kReplacements[i].name;
  for (std::size_t i = 0; i < kOthers.size(); ++i) names[kReplacements.size() + i] = kOthers[i];
  return names;
}();

/// `valid`, broken in one of kBreaks' ways.
std::string spoil(std::string valid, std::string_view way, Random& random) {
  const auto* const replacement = std::ranges::find(kReplacements, way, &Replacement::name);
  if (replacement != kReplacements.end()) {
    const std::size_t at = valid.find(replacement->from);
    BATON_ASSERT(at != std::string::npos);
    return valid.replace(at, replacement->from.size(), replacement->to);
  }
  if (way == "empty") return {};
  if (way == "cut off") return valid.substr(0, 1 + random.below(valid.size() - 1));
  if (way == "one byte short") return valid.substr(0, valid.size() - 1);
  if (way == "a trailing comma") return valid.substr(0, valid.size() - 1) + ",}";
  if (way == "text after the end") return valid + " ok";
  if (way == "two documents") return valid + "\n" + valid;
  return std::string(1000, '[') + valid + std::string(1000, ']');  // too deep
}

/// One to one: two indexes never give the same value.
std::uint64_t scramble(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

}  // namespace

std::string_view to_string(OrderFate fate) {
  constexpr std::array<std::string_view, 4> kNames = {"valid", "invalid", "broken", "duplicate"};
  return kNames.at(std::to_underlying(fate));
}

OrderGenerator::OrderGenerator(std::uint64_t seed, OrderMix mix)
    : seed_(seed), mix_(mix), root_(seed) {
  BATON_ASSERT(mix.invalid + mix.broken + mix.duplicate <= kParts);
  for (auto& [flaw, change] : all_flaws()) {
    flaws_.push_back(std::move(flaw));
    changes_.push_back(change);
  }
}

std::span<const std::string_view> OrderGenerator::breaks() { return kBreaks; }

GeneratedOrder OrderGenerator::generate(std::uint64_t index) const {
  Random random = random_of(index);
  switch (drawn_fate(random)) {
    case OrderFate::invalid: return generate_invalid(index, random.below(flaws_.size()));
    case OrderFate::broken: return generate_broken(index, random.below(kBreaks.size()));
    case OrderFate::duplicate:
      if (const auto original = earlier_valid(index, random); original.has_value()) {
        GeneratedOrder order = generate_valid(*original);
        order.index = index;
        order.fate = OrderFate::duplicate;
        order.duplicate_of = original;
        return order;
      }
      break;
    case OrderFate::valid: break;
  }
  return generate_valid(index);
}

GeneratedOrder OrderGenerator::generate_valid(std::uint64_t index) const {
  GeneratedOrder order;
  order.index = index;
  order.order_uid = order_uid_of(index);
  Random random = random_of(index).fork("order");
  order.bytes = write_order(order.order_uid, random, nullptr);
  return order;
}

GeneratedOrder OrderGenerator::generate_invalid(std::uint64_t index, std::size_t flaw) const {
  GeneratedOrder order;
  order.index = index;
  order.order_uid = order_uid_of(index);
  order.fate = OrderFate::invalid;
  order.rule = flaws_.at(flaw).name;
  order.pointer = flaws_.at(flaw).pointer;
  order.keyword = flaws_.at(flaw).keyword;
  Random random = random_of(index).fork("order");
  order.bytes = write_order(order.order_uid, random, &changes_.at(flaw));
  return order;
}

GeneratedOrder OrderGenerator::generate_broken(std::uint64_t index, std::size_t way) const {
  GeneratedOrder order = generate_valid(index);
  Random random = random_of(index).fork("break");
  order.fate = OrderFate::broken;
  order.rule = kBreaks.at(way);
  order.bytes = spoil(std::move(order.bytes), order.rule, random);
  return order;
}

Random OrderGenerator::random_of(std::uint64_t index) const {
  const auto label = std::bit_cast<std::array<char, sizeof index>>(index);
  return root_.fork({label.data(), label.size()});
}

OrderFate OrderGenerator::drawn_fate(Random& random) const {
  const std::uint64_t draw = random.below(kParts);
  if (draw < mix_.invalid) return OrderFate::invalid;
  if (draw < mix_.invalid + mix_.broken) return OrderFate::broken;
  if (draw < mix_.invalid + mix_.broken + mix_.duplicate) return OrderFate::duplicate;
  return OrderFate::valid;
}

std::optional<std::uint64_t> OrderGenerator::earlier_valid(std::uint64_t index,
                                                           Random& random) const {
  const std::uint64_t reach = std::min(index, kDuplicateDistanceMax);
  for (int i = 0; i < kDuplicateTries && reach > 0; ++i) {
    const std::uint64_t candidate = index - 1 - random.below(reach);
    Random other = random_of(candidate);
    if (drawn_fate(other) == OrderFate::valid) return candidate;
  }
  return std::nullopt;
}

std::string OrderGenerator::order_uid_of(std::uint64_t index) const {
  return fmt::format("{:016x}{:04x}", scramble(index + scramble(seed_ + 1)), seed_ & 0xffffU);
}

}  // namespace baton::orders
