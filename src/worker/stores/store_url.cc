#include "worker/stores/store_url.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/address.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

struct SchemeOf {
  std::string_view name;
  StoreUrl::Kind kind;
  bool tls;
};
// The first of a kind is the one that is written.
constexpr std::array kSchemes{SchemeOf{"baton", StoreUrl::Kind::broker, false},
                              SchemeOf{"batons", StoreUrl::Kind::broker, true},
                              SchemeOf{"nats", StoreUrl::Kind::nats, false},
                              SchemeOf{"natss", StoreUrl::Kind::nats, true},
                              SchemeOf{"tls", StoreUrl::Kind::nats, true},  // As NATS has it.
                              SchemeOf{"etcd", StoreUrl::Kind::etcd, false},
                              SchemeOf{"etcds", StoreUrl::Kind::etcd, true}};

/// Reads one URL; the errors quote it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

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

  Status scheme() {
    const auto [name, rest] = split_scheme(rest_);
    if (name.empty()) return wrong("it begins with none of baton://, nats:// and etcd://");
    const auto* found = std::ranges::find(kSchemes, name, &SchemeOf::name);
    if (found == kSchemes.end()) {
      return wrong(
          fmt::format("\"{}\" is no kind of store: baton, nats or etcd is, and with TLS "
                      "batons, natss or etcds",
                      name));
    }
    url_.kind = found->kind;
    url_.tls = found->tls;
    rest_ = rest;
    return {};
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
    if (url_.kind == StoreUrl::Kind::broker && url_.endpoints.size() > 1) {
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

  Status options(std::string_view query) {
    constexpr std::string_view kReplicas = "replicas=";
    if (url_.kind != StoreUrl::Kind::nats) return wrong("only nats:// takes options after the ?");
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
  bool found_ = false;
  StoreUrl url_;
};

}  // namespace

Result<StoreUrl> parse_store_url(std::string_view text) { return Parser(text).run(); }

std::string_view scheme_of(StoreUrl::Kind kind, bool tls) {
  const auto* found = std::ranges::find_if(
      kSchemes, [&](const SchemeOf& one) { return one.kind == kind && one.tls == tls; });
  return found->name;
}

std::string to_string(const StoreUrl& url) {
  std::string text = fmt::format("{}://{}/{}", scheme_of(url.kind, url.tls),
                                 fmt::join(url.endpoints, ","), url.bucket);
  if (url.replicas) text += fmt::format("?replicas={}", *url.replicas);
  return text;
}

}  // namespace baton::coord
