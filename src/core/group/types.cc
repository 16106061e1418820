#include "core/group/types.h"

#include <fmt/format.h>

namespace baton {
namespace {

Status check_name(std::string_view what, std::string_view name, std::size_t bytes_max) {
  if (!name.empty() && name.size() <= bytes_max) return {};
  return Error{Errc::invalid_argument, fmt::format("the {} has {} bytes; 1 to {} are allowed", what,
                                                   name.size(), bytes_max)};
}

}  // namespace

std::string to_string(ConsumerStatus status) {
  std::string text;
  if (status.connectivity == Connectivity::disconnected) text = "d";
  if (status.connectivity == Connectivity::forgotten) text = "f";
  switch (status.activity) {
    case Activity::waiting: return text + "W";
    case Activity::active: return text + "A";
    case Activity::deactivating: return text + "X";
  }
  return text;
}

std::string_view to_string(Handover handover) {
  return handover == Handover::strict ? "strictly" : "at once";
}

std::string to_string(const GroupId& group) {
  return fmt::format("{}/{} {}", group.stream, group.partition, group.name);
}

std::string to_string(const MemberId& member) {
  return fmt::format("node {} connection {} subscription {}", member.connection.node.value,
                     member.connection.number.value, member.subscription.value);
}

Status validate(const GroupId& group) {
  BATON_TRY_STATUS(check_name("stream's name", group.stream, limits::kStreamNameBytes));
  BATON_TRY_STATUS(check_name("group's name", group.name, limits::kGroupNameBytes));
  if (group.partition >= limits::kPartitionsPerStream) {
    return Error{Errc::invalid_argument,
                 fmt::format("partition {}; a stream has at most {}", group.partition,
                             limits::kPartitionsPerStream)};
  }
  return {};
}

}  // namespace baton
