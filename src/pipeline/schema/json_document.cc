#include "pipeline/schema/json_document.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "pipeline/schema/json_reader.h"
#include "pipeline/schema/json_text.h"

namespace baton::schema {
namespace {

constexpr std::size_t kCapacityMin = 4096;

std::string_view explain(simdjson::error_code code) {
  switch (code) {
    case simdjson::EMPTY: return "the document is empty";
    case simdjson::UTF8_ERROR: return "the document is not UTF-8";
    case simdjson::UNCLOSED_STRING: return "a string has no end";
    case simdjson::UNESCAPED_CHARS: return "a string has a control character that is not escaped";
    default: return simdjson::error_message(code);
  }
}

}  // namespace

/// simdjson's first stage only: where each token begins. Its ondemand and dom front ends hide the
/// tokens: ondemand copies every key, dom refuses integers beyond 64 bits.
class JsonDocument::Indexer {
 public:
  /// The offsets of all tokens, followed by the length of `bytes`.
  simdjson::error_code index(std::string_view bytes, std::span<const std::uint32_t>& tokens) {
    if (const auto code = reserve(bytes.size()); code != simdjson::SUCCESS) return code;
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT
    const auto code = parser_->stage1(data, bytes.size(), simdjson::stage1_mode::regular);
    if (code != simdjson::SUCCESS) return code;
    const std::uint32_t count = parser_->n_structural_indexes;
    parser_->structural_indexes[count] = static_cast<std::uint32_t>(bytes.size());
    tokens = {parser_->structural_indexes.get(), count + 1};
    return simdjson::SUCCESS;
  }

 private:
  simdjson::error_code reserve(std::size_t bytes) {
    if (parser_ != nullptr && bytes <= parser_->capacity()) return simdjson::SUCCESS;
    const std::size_t capacity = std::max(std::bit_ceil(bytes), kCapacityMin);
    if (parser_ != nullptr) return parser_->set_capacity(capacity);
    return simdjson::get_active_implementation()->create_dom_parser_implementation(
        capacity, kDepthMax, parser_);
  }

  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser_;
};

std::string_view to_string(JsonKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"null",  "boolean", "number", "string",
                                                      "array", "object",  "string"};
  return kNames.at(std::to_underlying(kind));
}

JsonDocument::JsonDocument(std::size_t bytes_max)
    : bytes_max_(std::min(bytes_max, kDocumentBytesMax)) {}
JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

Status JsonDocument::read(std::string_view bytes) {
  size_ = 0;
  if (bytes.size() > bytes_max_) {
    return Error{Errc::malformed, fmt::format("the document has {} bytes; the limit is {}",
                                              bytes.size(), bytes_max_)};
  }
  if (indexer_ == nullptr) indexer_ = std::make_unique<Indexer>();
  std::span<const std::uint32_t> tokens;
  if (const auto code = indexer_->index(bytes, tokens); code != simdjson::SUCCESS) {
    return Error{Errc::malformed, std::string(explain(code))};
  }
  if (nodes_.size() < tokens.size()) nodes_.resize(std::bit_ceil(tokens.size()));
  return JsonReader(*this, bytes, tokens).run();
}

void JsonDocument::settle() {
  indexer_.reset();
  nodes_.resize(size_);
  nodes_.shrink_to_fit();
}

JsonIndex JsonDocument::member(JsonIndex object, std::string_view name) const {
  if (nodes_[object].kind != JsonKind::object) return 0;
  for (JsonIndex key = object + 1; key < nodes_[object].next; key = nodes_[key + 1].next) {
    if (nodes_[key].text() == name) return key + 1;
  }
  return 0;
}

JsonIndex JsonDocument::child(JsonIndex parent, std::string_view name) const {
  if (nodes_[parent].kind != JsonKind::array) return member(parent, name);
  std::uint32_t place = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), place);
  const bool canonical = !name.empty() && (name == "0" || name[0] != '0');
  if (failure != std::errc{} || end != name.data() + name.size() || !canonical) return 0;
  if (place >= nodes_[parent].count) return 0;
  JsonIndex element = parent + 1;
  while (place-- > 0) element = nodes_[element].next;
  return element;
}

std::string_view JsonDocument::source(JsonIndex at) const {
  const JsonNode& node = nodes_[at];
  if (node.kind != JsonKind::string) return node.text();
  if (!node.flag) return {node.data - 1, std::size_t{node.size} + 2};
  return {std::bit_cast<const char*>(node.word), node.count};
}

std::string JsonDocument::pointer(JsonIndex at) const {
  std::string out;
  JsonIndex here = 0;
  const auto leads_there = [&](JsonIndex child) { return at < nodes_[child].next; };
  while (here != at) {
    JsonIndex child = here + 1;
    if (nodes_[here].kind == JsonKind::object) {
      while (!leads_there(child + 1)) child = nodes_[child + 1].next;
      append_pointer(out, nodes_[child].text());
      if (child == at) break;  // A key means its value.
      here = child + 1;
    } else {
      std::size_t place = 0;
      for (; !leads_there(child); child = nodes_[child].next) ++place;
      out += fmt::format("/{}", place);
      here = child;
    }
  }
  return out;
}

}  // namespace baton::schema
