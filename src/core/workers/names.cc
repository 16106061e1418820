#include "core/workers/names.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace baton::partition {
namespace {

constexpr std::size_t kNameMax = 64;

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !text.empty() && text.size() <= kNameMax && std::ranges::all_of(text, fits);
}

}  // namespace

Status check_name(std::string_view field, std::string_view name) {
  if (is_name(name)) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{} \"{}\" must be 1 to {} letters, digits, _ or -", field,
                           name.substr(0, kNameMax), kNameMax)};
}

bool is_session_id(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot != std::string_view::npos && is_name(text.substr(0, dot)) &&
         is_name(text.substr(dot + 1));
}

std::string group_prefix(std::string_view group) { return fmt::format("g.{}.", group); }

std::string session_key(std::string_view group, std::string_view session) {
  return fmt::format("g.{}.m.{}", group, session);
}

std::string assignment_key(std::string_view group, std::uint32_t chunk) {
  return chunk == 0 ? fmt::format("g.{}.a", group) : fmt::format("g.{}.a.{}", group, chunk);
}

std::optional<SessionId> session_of_key(std::string_view group, std::string_view key) {
  const std::string prefix = session_key(group, "");
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::string_view session = key.substr(prefix.size());
  return is_session_id(session) ? std::optional<SessionId>(session) : std::nullopt;
}

std::optional<std::uint32_t> chunk_of_key(std::string_view group, std::string_view key) {
  const std::string first = assignment_key(group, 0);
  if (key == first) return 0;
  if (!key.starts_with(first + ".")) return std::nullopt;
  const std::string_view digits = key.substr(first.size() + 1);
  std::uint32_t chunk = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), chunk);
  if (error != std::errc{} || end != digits.data() + digits.size() || chunk == 0 ||
      chunk >= kPartitionsMax / kChunkPartitions || digits.starts_with('0')) {
    return std::nullopt;
  }
  return chunk;
}

std::string_view worker_of(std::string_view session) {
  return session.substr(0, session.find('.'));
}

}  // namespace baton::partition
