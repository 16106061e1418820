#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/shard/stream_shard.h"

/// The groups of a StreamShard: their consumers, seats and offsets.
namespace baton {
namespace {

/// In a stream with one partition the first consumer keeps the seat. With several partitions, the
/// seats are spread by the partition's number.
PartitionIndex index_of(const StreamInfo& stream, PartitionNumber partition) {
  return stream.partitions() == 1 ? kSimple
                                  : PartitionIndex{static_cast<std::int32_t>(partition.value)};
}

}  // namespace

void StreamShard::on(SubscribeCommand& command, Instant now) {
  if (const Status subscribed = subscribe(command, now); !subscribed.has_value()) {
    command.error = subscribed.error();
  }
}

Status StreamShard::subscribe(SubscribeCommand& command, Instant now) {
  BATON_TRY(const StreamInfo* const stream, catalog_.find(command.stream));
  if (command.partitions.empty()) {
    for (std::uint32_t number = 0; number < stream->partitions(); ++number) {
      command.partitions.emplace_back(number);
    }
  }
  for (const PartitionNumber number : command.partitions) {
    BATON_TRY(auto opened, open(*stream, number, now));
    command.subscribed.push_back({number, std::move(opened), std::nullopt});
  }
  if (command.group.empty()) return {};
  for (SubscribeCommand::Subscribed& part : command.subscribed) {
    const auto offset = coordinator_.register_consumer(
        {.group = {command.stream, part.partition.value, command.group},
         .member = command.member,
         .ticket = command.ticket,
         .single_active = command.single_active,
         .partition_index = index_of(*stream, part.partition),
         .owner = command.owner,
         .handover = command.handover,
         .has_lease = command.has_lease},
        now);
    if (!offset.has_value()) {
      unsubscribe({.stream = command.stream,
                   .partitions = command.partitions,
                   .group = command.group,
                   .member = command.member},
                  now);
      return offset.error();
    }
    part.offset = *offset;
  }
  // Only now, because the end of a connection without a subscription is never reported.
  sinks_[command.member.connection] = command.sink;
  return {};
}

void StreamShard::on(UnsubscribeCommand& command, Instant now) { unsubscribe(command, now); }

void StreamShard::unsubscribe(const UnsubscribeCommand& command, Instant now) {
  for (const PartitionNumber number : command.partitions) {
    coordinator_.unregister({command.stream, number.value, command.group}, command.member, now);
  }
}

void StreamShard::on(StepDownReplyCommand& command, Instant now) {
  coordinator_.step_down_replied({command.stream, command.partition.value, command.group},
                                 command.member, command.generation, now);
}

void StreamShard::on(ConnectionDownCommand& command, Instant now) {
  if (command.lease_until.has_value()) {
    coordinator_.connection_lost(command.connection, *command.lease_until, now);
  } else {
    coordinator_.connection_down(command.connection, now);
  }
  sinks_.erase(command.connection);
}

void StreamShard::on(StoreOffsetCommand& command, Instant now) {
  const GroupId& group = command.request.group;
  const auto stream = catalog_.find(group.stream);
  if (!stream.has_value()) {
    command.error = stream.error();
    return;
  }
  const auto partition = open(**stream, PartitionNumber{group.partition}, now);
  if (!partition.has_value()) {
    command.error = partition.error();
    return;
  }
  const auto next = static_cast<std::uint64_t>((*partition)->log().next().value);
  if (command.request.offset.value > next) {
    command.error = Error{
        Errc::offset_out_of_range,
        fmt::format("offset is {}; the partition ends at {}", command.request.offset.value, next)};
    return;
  }
  const auto stored = coordinator_.store_offset(command.request, now);
  if (stored.has_value()) {
    command.stored = *stored;
  } else {
    command.error = stored.error();
  }
}

void StreamShard::on(QueryOffsetCommand& command, Instant /*now*/) {
  const auto stream = catalog_.find(command.stream);
  if (!stream.has_value()) {
    command.error = stream.error();
    return;
  }
  if (command.partition.value >= (*stream)->partitions()) {
    command.error = no_such_partition(**stream, command.partition);
    return;
  }
  const GroupId group{command.stream, command.partition.value, command.group};
  command.offset = coordinator_.query_offset(group);
  if (const auto* known = coordinator_.find(group); known != nullptr) {
    command.generation = known->record.generation;
  }
}

/// Fails if one of the moves is not possible; otherwise fills in the group's present offsets.
Status StreamShard::check_moves(SetGroupOffsetsCommand& command, Instant now) {
  BATON_TRY(const StreamInfo* const stream, catalog_.find(command.stream));
  // For any partition: a consumer that joins one partition later must not find it moved while
  // another consumer works today.
  for (std::uint32_t number = 0; number < stream->partitions(); ++number) {
    const auto* group = coordinator_.find({command.stream, number, command.group});
    if (group == nullptr || group->consumers.empty()) continue;
    return Error{
        Errc::failed_precondition,
        fmt::format("group '{}' has {} consumer{} at partition {}: stop its consumers, and "
                    "set the offset again",
                    command.group, group->consumers.size(), group->consumers.size() == 1 ? "" : "s",
                    number)};
  }
  for (SetGroupOffsetsCommand::Move& move : command.moves) {
    BATON_TRY(const auto partition, open(*stream, move.partition, now));
    const PartitionDescription log = partition->log().describe();
    const auto first = static_cast<std::uint64_t>(log.first.value);
    const auto next = static_cast<std::uint64_t>(log.next.value);
    if (move.offset.value < first || move.offset.value > next) {
      return Error{
          Errc::offset_out_of_range,
          fmt::format("offset is {}; partition {} of stream '{}' has {} to {}", move.offset.value,
                      move.partition.value, command.stream, first, next)};
    }
    move.before = coordinator_.query_offset({command.stream, move.partition.value, command.group});
  }
  return {};
}

void StreamShard::on(SetGroupOffsetsCommand& command, Instant now) {
  if (const Status checked = check_moves(command, now); !checked.has_value()) {
    command.error = checked.error();
    return;
  }
  if (command.dry_run) return;
  for (const SetGroupOffsetsCommand::Move& move : command.moves) {
    const auto stored =
        coordinator_.store_offset({.group = {command.stream, move.partition.value, command.group},
                                   .holder = std::nullopt,
                                   .offset = move.offset,
                                   .may_rewind = true},
                                  now);
    // Only a shard with too many groups refuses now.
    if (!stored.has_value()) {
      command.error = stored.error();
      return;
    }
  }
}

void StreamShard::on(ListGroupsCommand& command, Instant /*now*/) {
  // Asks for one more than wanted, which tells whether there are more.
  const std::size_t asked = std::max(command.groups_max, command.groups_max + 1);
  for (GroupDescription& group : coordinator_.list(command.stream, command.after, asked)) {
    command.more = command.groups.size() == command.groups_max;
    if (!command.more) command.groups.push_back(report(std::move(group)));
  }
}

void StreamShard::on(GroupCommand& command, Instant now) {
  const auto stream = catalog_.find(command.stream);
  if (!stream.has_value()) {
    command.error = stream.error();
    return;
  }
  std::vector<GroupId> groups;
  for (std::uint32_t number = 0; number < (*stream)->partitions(); ++number) {
    GroupId group{command.stream, number, command.group};
    if (coordinator_.find(group) != nullptr) groups.push_back(std::move(group));
  }
  if (groups.empty()) {
    command.error = Error{Errc::not_found, fmt::format("stream '{}' has no group '{}'",
                                                       command.stream, command.group)};
    return;
  }
  if (const Status done = change(groups, command.what, now); !done.has_value()) {
    command.error = done.error();
    return;
  }
  for (const GroupId& group : groups) {
    // The evaluation may have left a group without consumers and without anything worth keeping.
    if (auto description = coordinator_.describe(group); description.has_value()) {
      command.partitions.push_back(report(*std::move(description)));
    }
  }
}

/// Changes all groups, or none.
Status StreamShard::change(const std::vector<GroupId>& groups, GroupCommand::What what,
                           Instant now) {
  if (what == GroupCommand::What::evaluate) {
    for (const GroupId& group : groups) {
      BATON_TRY_STATUS(coordinator_.evaluate_group(group, {}, now));
    }
  }
  if (what != GroupCommand::What::forget) return {};
  // A group that refuses is found first, before anything has changed.
  const auto busy = std::ranges::find_if(groups, [this](const GroupId& group) {
    return !coordinator_.find(group)->consumers.empty();
  });
  if (busy != groups.end()) return coordinator_.delete_group(*busy);
  for (const GroupId& group : groups) BATON_TRY_STATUS(coordinator_.delete_group(group));
  return {};
}

void StreamShard::collect_seats() {
  for (auto& effect : coordinator_.take_effects().list) {
    const MemberId* const member = std::visit(
        [](const auto& told) -> const MemberId* {
          if constexpr (requires { told.member; }) {
            return &told.member;
          } else {
            // Watches and timers need nothing: this process is the only node, its connections
            // report their own end, and expire() handles the timers.
            return nullptr;
          }
        },
        effect);
    if (member == nullptr) continue;
    const auto sink = sinks_.find(member->connection);
    if (sink == sinks_.end()) continue;
    if (auto alive = sink->second.lock(); alive != nullptr) {
      told_.emplace_back(std::move(alive), std::move(effect));
    }
  }
}

std::shared_ptr<StreamPartition> StreamShard::find_partition(const GroupId& group) const {
  const auto stream = catalog_.find(group.stream);
  if (!stream.has_value()) return nullptr;
  const auto known = partitions_.find({(*stream)->id, PartitionNumber{group.partition}});
  return known == partitions_.end() ? nullptr : known->second;
}

std::uint64_t StreamShard::lag_of(const GroupId& group, std::optional<GroupOffset> offset) const {
  const auto partition = find_partition(group);
  if (partition == nullptr) return 0;
  const PartitionReader reader = partition->reader();
  const auto next = static_cast<std::uint64_t>(reader.next().value);
  const auto first = static_cast<std::uint64_t>(reader.first().value);
  const std::uint64_t from = offset.has_value() ? std::max(offset->value, first) : first;
  return next > from ? next - from : 0;
}

GroupReport StreamShard::report(GroupDescription group) const {
  const std::uint64_t lag = lag_of(group.group, group.offset);
  for (MemberDescription& member : group.members) {
    member.lease_until = member.forgotten_at;
    const auto sink = sinks_.find(member.member.connection);
    const auto alive = sink == sinks_.end() ? nullptr : sink->second.lock();
    if (alive != nullptr) member.lease_until = alive->lease_until();
  }
  auto partition = find_partition(group.group);
  return {.description = std::move(group), .lag = lag, .partition = std::move(partition)};
}

StreamDescription StreamShard::describe(const StreamInfo& stream) const {
  StreamDescription description{.name = stream.name,
                                .id = stream.id,
                                .settings = stream.settings,
                                .created_at = stream.created_at,
                                .partitions = {}};
  description.partitions.resize(stream.partitions());
  for (std::uint32_t number = 0; number < stream.partitions(); ++number) {
    const auto partition = partitions_.find({stream.id, PartitionNumber{number}});
    if (partition == partitions_.end()) continue;  // Never used: empty.
    description.partitions[number].log = partition->second->log().describe();
  }
  for (const GroupDescription& group : coordinator_.list(stream.name)) {
    if (group.group.partition >= stream.partitions()) continue;
    description.partitions[group.group.partition].groups.push_back(
        {.group = group.group.name,
         .offset = group.offset,
         .lag = lag_of(group.group, group.offset)});
  }
  return description;
}

}  // namespace baton
