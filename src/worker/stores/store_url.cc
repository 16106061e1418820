#include "worker/stores/store_url.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/address.h"
#include "base/assert.h"
#include "worker/stores/limits.h"
#include "worker/stores/store_kind.h"

namespace baton::coord {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// "a, b or c".
std::string join_names(const std::vector<std::string>& names, std::string_view last) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} {} {}", fmt::join(names.begin(), names.end() - 1, ", "), last,
                     names.back());
}

/// Reads one URL; the errors quote it.
class Parser {
 public:
  Parser(std::string_view text, std::span<const StoreRow> rows)
      : text_(text), rest_(text), rows_(rows) {}

  Result<StoreUrl> run() {
    if (text_.size() > limits::kUrlBytes) {
      return Error{Errc::invalid_argument,
                   fmt::format("the store's URL has {} bytes; the limit is {}", text_.size(),
                               limits::kUrlBytes)};
    }
    if (text_.find('@') != std::string_view::npos) {
      // Not quoted: errors end up in logs.
      return Error{Errc::invalid_argument,
                   "user names and passwords have no place in a store's URL: give --user and "
                   "--password-file, or BATON_USER and BATON_PASSWORD"};
    }
    BATON_TRY_STATUS(scheme());
    const std::string_view query = split_off('?');
    const bool has_query = found_;
    const std::string_view path = split_off('/');
    const bool has_path = found_;
    BATON_TRY_STATUS(endpoints());
    if (has_path) BATON_TRY_STATUS(bucket(path));
    if (has_query) BATON_TRY_STATUS(options(query));
    return std::move(url_);
  }

 private:
  [[nodiscard]] Error wrong(std::string_view what) const {
    return {Errc::invalid_argument, fmt::format("store \"{}\": {}", text_, what)};
  }

  /// Cuts `rest_` at the first `mark` and answers what comes after it.
  std::string_view split_off(char mark) {
    const auto at = rest_.find(mark);
    found_ = at != std::string_view::npos;
    if (!found_) return {};
    const std::string_view after = rest_.substr(at + 1);
    rest_ = rest_.substr(0, at);
    return after;
  }

  /// The schemes of what this build has, as people write them.
  [[nodiscard]] std::vector<std::string> known(bool tls, std::string_view after) const {
    std::vector<std::string> names;
    for (const StoreRow& row : rows_) {
      if (row.adapter == nullptr) continue;
      if (const auto* scheme = row.kind->scheme(tls)) {
        names.push_back(fmt::format("{}{}", scheme->name, after));
      }
    }
    return names;
  }

  Status scheme() {
    const auto [name, rest] = split_scheme(rest_);
    if (name.empty()) {
      return wrong(
          fmt::format("it begins with none of {}", join_names(known(false, "://"), "and")));
    }
    for (const StoreRow& row : rows_) {
      const auto* found = std::ranges::find(row.kind->schemes, name, &StoreKind::Scheme::name);
      if (found == row.kind->schemes.end()) continue;
      if (row.adapter == nullptr) {
        return wrong(fmt::format("this build has no stores of the kind {}: build it with -D{}=ON",
                                 row.kind->name, row.kind->option));
      }
      url_.kind = row.kind;
      url_.tls = found->tls;
      rest_ = rest;
      return {};
    }
    return wrong(fmt::format("\"{}\" is no kind of store: {} is, and with TLS {}", name,
                             join_names(known(false, ""), "or"),
                             join_names(known(true, ""), "or")));
  }

  Status endpoints() {
    if (rest_.empty()) return wrong("the host is missing");
    while (true) {
      const std::string_view later = split_off(',');
      const bool more = found_;
      BATON_TRY_STATUS(endpoint(rest_));
      if (!more) break;
      rest_ = later;
    }
    if (url_.kind->one_address && url_.endpoints.size() > 1) {
      return wrong("a broker has one address");
    }
    return {};
  }

  Status endpoint(std::string_view text) {
    if (url_.endpoints.size() == limits::kEndpoints) {
      return wrong(fmt::format("more than {} addresses", limits::kEndpoints));
    }
    const auto parsed = parse_address(text);
    if (!parsed) return wrong(parsed.error().text);
    url_.endpoints.emplace_back(text);
    return {};
  }

  Status bucket(std::string_view name) {
    if (name.empty()) return wrong("the bucket's name is missing after the /");
    const bool fits = name.size() <= limits::kBucketBytes && std::ranges::all_of(name, [](char c) {
                        return is_letter_or_digit(c) || c == '-' || c == '_';
                      });
    if (!fits) {
      return wrong(
          fmt::format("\"{}\" is not a bucket's name: letters, digits, - and _, at most {}", name,
                      limits::kBucketBytes));
    }
    url_.bucket = name;
    return {};
  }

  [[nodiscard]] std::string takers_of_options() const {
    std::vector<std::string> names;
    for (const StoreRow& row : rows_) {
      if (row.kind->takes_replicas) names.push_back(fmt::format("{}://", row.kind->name));
    }
    return join_names(names, "and");
  }

  Status options(std::string_view query) {
    constexpr std::string_view kReplicas = "replicas=";
    if (!url_.kind->takes_replicas) {
      return wrong(fmt::format("only {} takes options after the ?", takers_of_options()));
    }
    if (!query.starts_with(kReplicas)) {
      return wrong(fmt::format("\"{}\" is no option: replicas=N is", query));
    }
    const std::string_view value = query.substr(kReplicas.size());
    std::uint32_t count = 0;
    const auto [end, problem] = std::from_chars(value.begin(), value.end(), count);
    if (problem != std::errc{} || end != value.end() || count == 0 ||
        count > limits::kReplicasMax) {
      return wrong(
          fmt::format("replicas=\"{}\" is not a number from 1 to {}", value, limits::kReplicasMax));
    }
    url_.replicas = count;
    return {};
  }

  std::string_view text_;
  std::string_view rest_;
  std::span<const StoreRow> rows_;
  bool found_ = false;
  StoreUrl url_;
};

}  // namespace

Result<StoreUrl> parse_store_url(std::string_view text, std::span<const StoreRow> rows) {
  return Parser(text, rows).run();
}

std::string to_string(const StoreUrl& url) {
  const auto* scheme = url.kind->scheme(url.tls);
  BATON_ASSERT(scheme != nullptr);
  std::string text =
      fmt::format("{}://{}/{}", scheme->name, fmt::join(url.endpoints, ","), url.bucket);
  if (url.replicas) text += fmt::format("?replicas={}", *url.replicas);
  return text;
}

}  // namespace baton::coord
