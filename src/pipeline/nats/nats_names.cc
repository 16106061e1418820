#include "pipeline/nats/nats_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

constexpr std::string_view kAckPrefix = "$JS.ACK.";
constexpr std::size_t kGroupMax = 128;
// stream.consumer.deliveries.sequence.sequence.time.pending. Since server 2.8, with domains,
// domain.account comes before this and another token after it.
constexpr std::size_t kAckParts = 7;
constexpr std::size_t kAckPartsWithDomain = 9;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Removes "-{number}" from the end.
template <class Number>
bool cut_number(std::string_view& text, Number& number) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || !read(text.substr(dash + 1), number)) return false;
  text.remove_suffix(text.size() - dash);
  return true;
}

}  // namespace

std::string to_string(const NatsConsumerName& name, std::string_view group,
                      std::uint32_t partition) {
  return fmt::format("{}-{}-{}-{}", group, partition, name.epoch, name.generation);
}

std::optional<NatsConsumerName> parse_nats_consumer(std::string_view text, std::string_view group,
                                                    std::uint32_t partition) {
  NatsConsumerName name;
  std::uint32_t found = 0;
  if (!cut_number(text, name.generation) || !cut_number(text, name.epoch)) return std::nullopt;
  if (!cut_number(text, found) || found != partition || text != group) return std::nullopt;
  return name;
}

std::optional<NatsDelivery> parse_nats_delivery(std::string_view reply_subject) {
  if (!reply_subject.starts_with(kAckPrefix)) return std::nullopt;
  const auto parts = split(reply_subject.substr(kAckPrefix.size()), '.');
  if (parts.size() != kAckParts && parts.size() < kAckPartsWithDomain) return std::nullopt;
  const std::size_t first = parts.size() == kAckParts ? 2 : 4;
  NatsDelivery delivery;
  if (!read(parts[first], delivery.deliveries) ||
      !read(parts[first + 1], delivery.stream_sequence) ||
      !read(parts[first + 2], delivery.consumer_sequence) ||
      !read(parts[first + 3], delivery.timestamp_ns) || !read(parts[first + 4], delivery.pending)) {
    return std::nullopt;
  }
  // Offsets are signed.
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max() / 2;
  if (delivery.stream_sequence > kMax || delivery.pending > kMax) return std::nullopt;
  return delivery;
}

std::string nats_subject(std::string_view pattern, std::uint32_t partition) {
  const std::size_t at = pattern.find(kPartitionPlaceholder);
  if (at == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, at), partition,
                     pattern.substr(at + kPartitionPlaceholder.size()));
}

std::string_view nats_subject_rest(std::string_view filter, std::string_view subject) {
  if (!filter.ends_with(".>") && !filter.ends_with(".*")) return {};
  const std::size_t fixed = filter.size() - 1;
  return subject.size() > fixed ? subject.substr(fixed) : std::string_view{};
}

bool nats_covers(std::string_view pattern, std::string_view filter) {
  const auto wide = split(pattern, '.');
  const auto narrow = split(filter, '.');
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (i >= narrow.size()) return false;
    if (wide[i] == ">") return true;
    if (narrow[i] == ">" || (wide[i] != "*" && wide[i] != narrow[i])) return false;
  }
  return wide.size() == narrow.size();
}

Status check_nats_group(std::string_view group) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (!group.empty() && group.size() <= kGroupMax && std::ranges::all_of(group, is_fine)) return {};
  return Error{
      Errc::invalid_argument,
      fmt::format("the group '{}' must have 1 to {} letters, digits, '-' or '_': the names "
                  "of its consumers on NATS begin with it",
                  group.substr(0, kGroupMax), kGroupMax)};
}

}  // namespace baton::pipeline
