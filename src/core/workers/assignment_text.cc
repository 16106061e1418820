#include "core/workers/assignment_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/parse.h"

namespace baton::partition {
namespace {

constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 53U;

/// Sessions are named once in a document, and then referred to by index.
class Holders {
 public:
  std::int64_t place_of(const SessionId& session) {
    if (session.empty()) return kNobody;
    const auto [at, is_new] = places_.try_emplace(session, std::ssize(names_));
    if (is_new) names_.push_back(session);
    return at->second;
  }
  [[nodiscard]] const std::vector<SessionId>& names() const { return names_; }

 private:
  std::vector<SessionId> names_;
  std::unordered_map<SessionId, std::int64_t> places_;
};

/// Parses a text from the front. Each step returns false when something else stands there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : left_(text) {}

  bool take(std::string_view expected) {
    if (!left_.starts_with(expected)) return false;
    left_.remove_prefix(expected.size());
    return true;
  }
  /// A number as JSON writes it, without a sign.
  bool number(std::uint64_t& value, std::uint64_t most) {
    constexpr std::size_t kDigitsMax = 16;  // Of kNumberMax.
    std::size_t digits = 0;
    value = 0;
    for (; digits < left_.size() && is_digit(left_[digits]); ++digits) {
      if (digits == kDigitsMax) return false;
      value = (value * 10) + static_cast<std::uint64_t>(left_[digits] - '0');
    }
    if (digits == 0 || (digits > 1 && left_[0] == '0') || value > most) return false;
    left_.remove_prefix(digits);
    return true;
  }
  /// A quoted text without any character that JSON would escape.
  bool plain_text(std::string& value) {
    if (!take("\"")) return false;
    const auto end = std::ranges::find_if_not(left_, is_plain);
    value.assign(left_.begin(), end);
    left_.remove_prefix(value.size());
    return take("\"");
  }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  static bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

  std::string_view left_;
};

/// The sessions of a holding, as indexes: their names come after all holdings.
struct Places {
  std::int64_t owner = kNobody;
  std::int64_t next = kNobody;
};

class AssignmentReader {
 public:
  explicit AssignmentReader(std::string_view text) : scanner_(text) {}

  std::optional<Assignment> read() {
    const bool good = scanner_.take(R"({"first":)") && small_number(result_.first) &&
                      scanner_.take(R"(,"holdings":[)") && rows() &&
                      scanner_.take(R"(],"partitions":)") && small_number(result_.partitions) &&
                      scanner_.take(R"(,"sessions":[)") && names() &&
                      scanner_.take(R"(,"version":1})") && scanner_.at_end();
    if (!good || !resolve() || !is_whole(result_)) return std::nullopt;
    return std::move(result_);
  }

 private:
  bool small_number(std::uint32_t& value) {
    std::uint64_t number = 0;
    if (!scanner_.number(number, kPartitionsMax)) return false;
    value = static_cast<std::uint32_t>(number);
    return true;
  }
  bool place(std::int64_t& value) {
    if (scanner_.take("-1")) return true;
    std::uint64_t number = 0;
    if (!scanner_.number(number, kNumberMax)) return false;
    value = static_cast<std::int64_t>(number);
    return true;
  }
  bool row() {
    Places& places = places_.emplace_back();
    Holding& holding = result_.holdings.emplace_back();
    std::uint64_t since = 0;
    std::uint64_t why = 0;
    const bool good = scanner_.take("[") && place(places.owner) && scanner_.take(",") &&
                      scanner_.number(holding.epoch, kEpochMax) && scanner_.take(",") &&
                      place(places.next) && scanner_.take(",") &&
                      scanner_.number(since, kNumberMax) && scanner_.take(",") &&
                      scanner_.number(why, std::to_underlying(Why::restart)) && scanner_.take("]");
    holding.since = WallTime(since);
    holding.why = static_cast<Why>(why);
    return good;
  }
  bool rows() {
    places_.reserve(kChunkPartitions);
    result_.holdings.reserve(kChunkPartitions);
    do {
      if (places_.size() == kChunkPartitions || !row()) return false;
    } while (scanner_.take(","));
    return true;
  }
  bool names() {
    if (scanner_.take("]")) return true;
    do {
      if (!scanner_.plain_text(names_.emplace_back()) || !is_session_id(names_.back()))
        return false;
    } while (scanner_.take(","));
    return scanner_.take("]");
  }

  bool resolve(SessionId& session, std::int64_t place) const {
    if (place >= std::ssize(names_)) return false;
    if (place != kNobody) session = names_[static_cast<std::size_t>(place)];
    return true;
  }
  bool resolve() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Holding& holding = result_.holdings[i];
      if (!resolve(holding.owner, places_[i].owner) || !resolve(holding.next, places_[i].next)) {
        return false;
      }
    }
    return true;
  }

  Scanner scanner_;
  Assignment result_;
  std::vector<Places> places_;  // Of each holding.
  std::vector<SessionId> names_;
};

}  // namespace

std::string write_assignment(const Assignment& assignment) {
  Holders holders;
  fmt::memory_buffer out;
  const auto end = std::back_inserter(out);
  fmt::format_to(end, R"({{"first":{},"holdings":[)", assignment.first);
  std::string_view separator;
  for (const Holding& holding : assignment.holdings) {
    const std::int64_t owner = holders.place_of(holding.owner);
    const std::int64_t next = holders.place_of(holding.next);
    fmt::format_to(end, "{}[{},{},{},{},{}]", std::exchange(separator, ","), owner, holding.epoch,
                   next, holding.since.count(), std::to_underlying(holding.why));
  }
  fmt::format_to(end, R"(],"partitions":{},"sessions":{},"version":{}}})", assignment.partitions,
                 nlohmann::json(holders.names()).dump(), kDocumentVersion);
  return fmt::to_string(out);
}

std::optional<Assignment> read_as_written(std::string_view text) {
  if (text.size() > kDocumentBytesMax) return std::nullopt;
  return AssignmentReader(text).read();
}

bool is_whole(const Assignment& assignment) {
  return assignment.first % kChunkPartitions == 0 && assignment.first < assignment.partitions &&
         assignment.holdings.size() ==
             size_of_chunk(assignment.partitions, assignment.first / kChunkPartitions);
}

}  // namespace baton::partition
