#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "pipeline/schema/decimal.h"
#include "pipeline/schema/formats.h"
#include "pipeline/schema/json_text.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/mapping_plan.h"

namespace baton::schema {
namespace {

constexpr JsonIndex kMissing = std::numeric_limits<JsonIndex>::max();

Error malformed(std::string text) { return {Errc::malformed, std::move(text)}; }

bool fits_a_double(std::string_view number) {
  double value = 0;
  return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc{};
}

}  // namespace

/// Walks one document after another: finds the values of a scope's paths, writes the rows of its
/// tables, and then does the same for each element of its arrays.
class Mapper::Walk {
 public:
  explicit Walk(const Mapping::Plan& plan) : plan_(plan), found_(plan.paths.size(), kMissing) {
    places_.resize(plan.scopes.size(), 0);
  }

  /// The number of cells of the last document, as an estimate for the next one.
  [[nodiscard]] std::size_t cells_before() const { return cells_; }

  Status run(const JsonDocument& document, DocumentRows& rows) {
    cells_ = 0;
    document_ = &document;
    rows_ = &rows;
    visits_.clear();
    BATON_TRY_STATUS(begin(0, 0));
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      if (visit.element == visit.end) {
        BATON_TRY_STATUS(next_array(visit));
        continue;
      }
      const JsonIndex element = std::exchange(visit.element, document.node(visit.element).next);
      const ScopeId inner = plan_.scopes[visit.scope].inner[visit.inner - 1];
      places_[inner] = visit.place++;
      BATON_TRY_STATUS(begin(inner, element));
    }
    return {};
  }

 private:
  /// A scope whose rows are written, and whose arrays are being visited.
  struct Visit {
    ScopeId scope;
    std::size_t inner;  // The number of arrays that were begun.
    JsonIndex element;  // The next element of the last array,
    JsonIndex end;
    std::size_t place;  // and how many elements were before it.
  };

  Status begin(ScopeId scope, JsonIndex at) {
    find_paths(scope, at);
    for (const std::size_t table : plan_.scopes[scope].tables) {
      BATON_TRY_STATUS(write_row(table));
    }
    if (!plan_.scopes[scope].inner.empty()) {
      visits_.push_back({.scope = scope, .inner = 0, .element = 0, .end = 0, .place = 0});
    }
    return {};
  }

  /// Continues with the next array of the scope; drops the visit if there is none.
  Status next_array(Visit& visit) {
    const Scope& scope = plan_.scopes[visit.scope];
    if (visit.inner == scope.inner.size()) {
      visits_.pop_back();
      return {};
    }
    const PathId array = plan_.scopes[scope.inner[visit.inner++]].array;
    const JsonIndex at = found_[array];
    if (is_absent(at)) return {};
    const JsonNode& node = document_->node(at);
    if (node.kind != JsonKind::array) {
      return malformed(fmt::format("{} is {}; it must be an array", document_->pointer(at),
                                   to_string(node.kind)));
    }
    visit.element = at + 1;
    visit.end = node.next;
    visit.place = 0;
    return {};
  }

  void find_paths(ScopeId scope, JsonIndex at) {
    for (const PathId path : plan_.scopes[scope].paths) found_[path] = kMissing;
    open_.clear();
    open_.emplace_back(plan_.scopes[scope].element, at);
    while (!open_.empty()) {
      const auto [path, value] = open_.back();
      open_.pop_back();
      found_[path] = value;
      const bool leads_on = plan_.paths[path].names.size() > 0;
      if (leads_on && document_->node(value).kind == JsonKind::object) find_members(path, value);
    }
  }

  void find_members(PathId path, JsonIndex object) {
    const PathNode& node = plan_.paths[path];
    const JsonIndex end = document_->node(object).next;
    std::size_t place = NameTable::kNone;
    for (JsonIndex key = object + 1; key < end; key = document_->node(key + 1).next) {
      const JsonNode& name = document_->node(key);
      const std::size_t known = node.names.find(name.text(), name.word, place + 1);
      if (known == NameTable::kNone) continue;
      place = known;
      const PathId member = node.members[known];
      if (plan_.paths[member].names.size() > 0) {
        open_.emplace_back(member, key + 1);
      } else {
        found_[member] = key + 1;
      }
    }
  }

  Status write_row(std::size_t place) {
    const PlannedTable& table = plan_.tables[place];
    // The document and each element always have a row; a member has one if it exists.
    const bool always = plan_.scopes[plan_.paths[table.row].scope].element == table.row;
    if (!always && is_absent(found_[table.row])) return {};
    const TableMapping& mapping = plan_.mapping.tables[place];
    rows_->begin_row(place);
    cells_ += table.columns.size();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const ColumnMapping& column = mapping.columns[i];
      const auto cell = make_cell(table.columns[i], column);
      if (!cell.has_value()) {
        return malformed(
            fmt::format("column {}.{}: {}", mapping.name, column.name, cell.error().text));
      }
      rows_->add(*cell);
    }
    return {};
  }

  Result<Cell> make_cell(const PlannedColumn& planned, const ColumnMapping& column) {
    if (planned.is_place)
      return digits(static_cast<std::int64_t>(places_[plan_.paths[planned.path].scope]));
    const JsonIndex at = found_[planned.path];
    if (is_absent(at)) {
      if (column.optional) return kNullCell;
      return malformed(fmt::format("{} is {}", plan_.paths[planned.path].text,
                                   at == kMissing ? "missing" : "null"));
    }
    switch (column.type) {
      case ColumnType::text: return text(at);
      case ColumnType::integer: return integer(at);
      case ColumnType::real: return real(at);
      case ColumnType::boolean: return boolean(at);
      case ColumnType::json: return Cell(document_->source(at));
      case ColumnType::timestamp: return timestamp(at);
    }
    return kNullCell;
  }

  Result<Cell> text(JsonIndex at) {
    const JsonNode& node = document_->node(at);
    if (node.kind == JsonKind::array || node.kind == JsonKind::object) return unfit(at, "a text");
    // Only an escape can contain it.
    if (node.kind == JsonKind::string && node.flag &&
        node.text().find('\0') != std::string_view::npos) {
      return malformed(
          fmt::format("{} has the character U+0000, which no text may have", where(at)));
    }
    return node.text();
  }

  Result<Cell> integer(JsonIndex at) {
    const JsonNode& node = document_->node(at);
    if (node.kind != JsonKind::number) return unfit(at, "an integer");
    // Small numbers are already in the form that we write, except for -0.
    if (node.is_small() && node.small() != 0) return node.text();
    number_.assign(node.text());
    const auto value = number_.to_int64();
    if (!value.has_value()) return unfit(at, "an integer of 64 bits");
    return digits(*value);
  }

  Result<Cell> real(JsonIndex at) {
    const JsonNode& node = document_->node(at);
    if (node.kind != JsonKind::number) return unfit(at, "a number");
    if (!node.is_small() && !fits_a_double(node.text())) {
      return unfit(at, "a number in the range of a double");
    }
    return node.text();
  }

  Result<Cell> boolean(JsonIndex at) {
    if (document_->node(at).kind != JsonKind::boolean) return unfit(at, "a boolean");
    return document_->node(at).text();
  }

  Result<Cell> timestamp(JsonIndex at) {
    const JsonNode& node = document_->node(at);
    if (node.kind != JsonKind::string || !is_date_time(node.text())) {
      return unfit(at, "an RFC 3339 date-time");
    }
    return node.text();
  }

  Cell digits(std::int64_t value) {
    const auto end = std::to_chars(digits_.data(), digits_.data() + digits_.size(), value).ptr;
    return {digits_.data(), static_cast<std::size_t>(end - digits_.data())};
  }

  [[nodiscard]] bool is_absent(JsonIndex at) const {
    return at == kMissing || document_->node(at).kind == JsonKind::null;
  }
  [[nodiscard]] std::string where(JsonIndex at) const {
    return at == 0 ? "the document" : document_->pointer(at);
  }
  [[nodiscard]] Error unfit(JsonIndex at, std::string_view wanted) const {
    return malformed(fmt::format("{} is {}, which is not {}", where(at),
                                 excerpt(document_->source(at)), wanted));
  }

  const Mapping::Plan& plan_;
  const JsonDocument* document_ = nullptr;
  DocumentRows* rows_ = nullptr;
  std::size_t cells_ = 0;
  std::vector<JsonIndex> found_;     // The value of each path, in the present element of its scope.
  std::vector<std::size_t> places_;  // The index of each scope's present element.
  std::vector<Visit> visits_;
  std::vector<std::pair<PathId, JsonIndex>> open_;
  Decimal number_;
  std::array<char, 24> digits_{};
};

Mapper::Mapper(Mapping mapping)
    : mapping_(std::move(mapping)), walk_(std::make_unique<Walk>(*mapping_.plan_)) {}
Mapper::~Mapper() = default;
Mapper::Mapper(Mapper&&) noexcept = default;
Mapper& Mapper::operator=(Mapper&&) noexcept = default;

Status Mapper::map(const JsonDocument& document, DocumentRows& rows) {
  rows.clear();
  rows.reserve(document.root().size, walk_->cells_before());
  rows.set_key_column(mapping_.key_column());
  Status done = walk_->run(document, rows);
  if (!done.has_value()) rows.clear();
  return done;
}

std::optional<std::string> Mapper::key(const JsonDocument& document) const {
  const Mapping::Plan& plan = *mapping_.plan_;
  if (document.size() == 0) return std::nullopt;
  const std::string& path = plan.mapping.tables.front().columns[plan.key_column].path;
  JsonIndex here = 0;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t dot = std::min(path.find('.', begin), path.size());
    here = document.member(here, std::string_view(path).substr(begin, dot - begin));
    if (here == 0) return std::nullopt;
    begin = dot + 1;
  }
  const JsonNode& node = document.node(here);
  if (node.kind != JsonKind::string && node.kind != JsonKind::number) return std::nullopt;
  return excerpt(node.text());
}

}  // namespace baton::schema
