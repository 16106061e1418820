#include "cluster/engines/engines.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/address.h"
#include "base/switches.h"
#include "cluster/loglet_nats/kind.h"

namespace baton::loglet {
namespace {

constexpr std::size_t kServersMax = 16;
constexpr std::size_t kNameBytesMax = 32;

/// Every engine. A new one is a folder with a kind.h, and a line here.
constexpr std::array kEngines = std::to_array<EngineRow>({
    {"nats", "BATON_WITH_NATS", BATON_NATS(&kNatsEngine)},
});

Error wrong_url(std::string_view url, std::string_view why) {
  return {Errc::invalid_argument, fmt::format("'{}': {}", url.substr(0, 100), why)};
}

Result<const EngineAdapter*> engine_of(std::string_view url, std::string_view scheme) {
  const auto* const row = std::ranges::find(kEngines, scheme, &EngineRow::scheme);
  if (row == kEngines.end()) {
    return wrong_url(url, "a cluster's URL begins with nats://, without TLS for now");
  }
  if (row->adapter == nullptr) {
    return wrong_url(
        url, fmt::format("this build has no {}: build it with -D{}=ON", scheme, row->option));
  }
  return row->adapter;
}

}  // namespace

bool is_cluster_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kNameBytesMax && std::ranges::all_of(name, fits);
}

Result<EngineUrl> parse_engine_url(std::string_view url, std::string_view name) {
  const SchemeSplit split = split_scheme(url);
  EngineUrl parsed;
  BATON_TRY(parsed.engine, engine_of(url, split.scheme));
  if (!is_cluster_name(name)) {
    return Error{Errc::invalid_argument,
                 fmt::format("the cluster's name '{}' is not 1 to {} of a-z, 0-9 and '-'",
                             name.substr(0, 100), kNameBytesMax)};
  }
  parsed.cluster.name = name;
  std::string_view rest = split.rest;
  while (true) {
    const std::string_view one = rest.substr(0, rest.find(','));
    const Result<Address> address = parse_address(one);
    if (!address.has_value()) return wrong_url(url, address.error().text);
    parsed.cluster.servers.emplace_back(one);
    if (parsed.cluster.servers.size() > kServersMax) {
      return wrong_url(url, fmt::format("it names more than {} servers", kServersMax));
    }
    if (one.size() == rest.size()) return parsed;
    rest.remove_prefix(one.size() + 1);
  }
}

}  // namespace baton::loglet
