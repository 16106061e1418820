// The durable part: facts, rows, offsets; and descriptions of groups.

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/group/machine.h"
#include "core/group/rows.h"

namespace baton {
namespace {

bool changes(GroupOffset stored, const OffsetToStore& request) {
  return request.may_rewind ? stored != request.offset : stored < request.offset;
}

}  // namespace

void Coordinator::commit(const CoordinatorFact& fact) {
  recorder_(fact);
  apply(fact);
}

void Coordinator::apply(const CoordinatorFact& fact) {
  std::visit([this](const auto& happened) { on(happened); }, fact);
  std::visit([this](const auto& happened) { changed_.insert(happened.group); }, fact);
}

void Coordinator::on(const GroupCreated& fact) {
  Group& group = groups_[fact.group];
  // A group changes its kind only while it is empty; generation and offset stay.
  BATON_ASSERT(group.consumers.empty());
  group.record.single_active = fact.single_active;
  group.record.handover = fact.handover;
  group.record.partition_index = fact.partition_index;
  totals_.groups = groups_.size();
}

void Coordinator::on(const GenerationTaken& fact) {
  const auto entry = groups_.find(fact.group);
  BATON_ASSERT(entry != groups_.end());
  Record& record = entry->second.record;
  // An epoch that is given twice fences nothing.
  BATON_ASSERT(fact.generation > record.generation);
  record.generation = fact.generation;
  record.generation_at = fact.at;
}

void Coordinator::on(const OffsetStored& fact) {
  const auto entry = groups_.find(fact.group);
  BATON_ASSERT(entry != groups_.end());
  entry->second.record.offset = fact.offset;
  entry->second.record.offset_at = fact.at;
}

void Coordinator::on(const GroupForgotten& fact) {
  const auto entry = groups_.find(fact.group);
  if (entry == groups_.end()) return;
  totals_.consumers -= entry->second.consumers.size();
  entry->second.consumers.clear();
  count_without_active(entry->second);
  groups_.erase(entry);
  totals_.groups = groups_.size();
}

void Coordinator::append_changed_rows(RowBatch& batch) {
  for (const GroupId& group : changed_) {
    const Group* state = find(group);
    if (state == nullptr) {
      batch.erase(tables::kGroups, group_row_key(group));
    } else {
      batch.put(tables::kGroups, group_row_key(group), encode_row(state->record));
    }
  }
  changed_.clear();
}

Status Coordinator::load(const Row& row) {
  BATON_TRY(const GroupId group, decode_group_row_key(row.key));
  BATON_TRY(const Record record, decode_group_row(row.value));
  groups_[group].record = record;
  totals_.groups = groups_.size();
  return {};
}

bool Coordinator::is_worthless(const Group& group) {
  return group.consumers.empty() && group.record.generation == Generation{} &&
         !group.record.offset.has_value();
}

void Coordinator::forget_all_worthless() {
  std::vector<GroupId> worthless;
  for (const auto& [group, state] : groups_) {
    if (is_worthless(state)) worthless.push_back(group);
  }
  for (const GroupId& group : worthless) commit(GroupForgotten{group});
}

Status Coordinator::delete_group(const GroupId& group) {
  const Group* state = find(group);
  if (state == nullptr) {
    return Error{Errc::not_found, fmt::format("there is no group '{}'", to_string(group))};
  }
  if (!state->consumers.empty()) {
    return Error{Errc::failed_precondition,
                 fmt::format("group '{}' has {} consumers; only an empty one can be deleted",
                             to_string(group), state->consumers.size())};
  }
  commit(GroupForgotten{group});
  return {};
}

void Coordinator::delete_stream(std::string_view stream) {
  const GroupId first{.stream = std::string(stream), .partition = 0, .name = {}};
  for (auto entry = groups_.lower_bound(first);
       entry != groups_.end() && entry->first.stream == stream;
       entry = groups_.lower_bound(first)) {
    for (const Consumer& consumer : entry->second.consumers) {
      effects_.list.emplace_back(CoordinatorEffects::Closed{
          entry->first, consumer.member, consumer.ticket,
          Error{Errc::not_found, fmt::format("the stream '{}' was deleted", stream)}});
    }
    remove_if(*entry, Cause::none, Instant{}, [](const Consumer&) { return true; });
    commit(GroupForgotten{GroupId{entry->first}});
  }
}

Status Coordinator::check_holder(const OffsetToStore& request, const Group& group) {
  if (!group.record.single_active) return {};
  if (!request.holder.has_value()) {
    if (group.consumers.empty()) return {};
    return Error{
        Errc::failed_precondition,
        fmt::format("group '{}' is single-active and has {} consumers: only its active one "
                    "stores offsets",
                    to_string(request.group), group.consumers.size())};
  }
  const Consumer* consumer = group.find(request.holder->member);
  const Generation epoch = request.holder->epoch;
  if (consumer != nullptr && consumer->holds_seat() && consumer->epoch == epoch) return {};
  ++totals_.stale_epochs_total;
  return Error{Errc::stale_epoch,
               fmt::format("group '{}': epoch {} of {} is over; the generation is {}",
                           to_string(request.group), epoch.value, to_string(request.holder->member),
                           group.record.generation.value)};
}

Result<GroupOffset> Coordinator::store_offset(const OffsetToStore& request, Instant now) {
  BATON_TRY_STATUS(check_room(request.group));
  const Group* group = find(request.group);
  if (group == nullptr && request.holder.has_value()) {
    ++totals_.stale_epochs_total;
    return Error{Errc::stale_epoch,
                 fmt::format("there is no group '{}', so {} holds no seat of it",
                             to_string(request.group), to_string(request.holder->member))};
  }
  if (group != nullptr) {
    BATON_TRY_STATUS(check_holder(request, *group));
    const std::optional<GroupOffset>& stored = group->record.offset;
    if (stored.has_value() && !changes(*stored, request)) return *stored;
  } else {
    commit(
        GroupCreated{.group = request.group, .single_active = false, .partition_index = kSimple});
  }
  const bool seat = request.holder.has_value() && find(request.group)->record.single_active;
  commit(OffsetStored{.group = request.group,
                      .epoch = seat ? request.holder->epoch : Generation{},
                      .offset = request.offset,
                      .at = now});
  return request.offset;
}

std::optional<GroupOffset> Coordinator::query_offset(const GroupId& group) const {
  const Group* state = find(group);
  return state == nullptr ? std::nullopt : state->record.offset;
}

const coordinator_state::Group* Coordinator::find(const GroupId& group) const {
  const auto entry = groups_.find(group);
  return entry == groups_.end() ? nullptr : &entry->second;
}

const coordinator_state::Link* Coordinator::find(ConnectionId connection) const {
  const auto link = links_.find(connection);
  return link == links_.end() ? nullptr : &link->second;
}

Result<GroupDescription> Coordinator::describe(const GroupId& group) const {
  const auto entry = groups_.find(group);
  if (entry == groups_.end()) {
    return Error{Errc::not_found, fmt::format("there is no group '{}'", to_string(group))};
  }
  return description_of(*entry);
}

std::vector<GroupDescription> Coordinator::list(std::string_view stream,
                                                const std::optional<GroupId>& after,
                                                std::size_t groups_max) const {
  std::vector<GroupDescription> found;
  const GroupId first{.stream = std::string(stream), .partition = 0, .name = {}};
  auto entry = after.has_value() && *after >= first ? groups_.upper_bound(*after)
                                                    : groups_.lower_bound(first);
  for (; entry != groups_.end() && (stream.empty() || entry->first.stream == stream) &&
         found.size() < groups_max;
       ++entry) {
    found.push_back(description_of(*entry));
  }
  return found;
}

GroupDescription Coordinator::description_of(const Groups::value_type& entry) const {
  const auto& [group, state] = entry;
  GroupDescription description;
  static_cast<coordinator_state::Record&>(description) = state.record;
  description.group = group;
  description.frozen = state.frozen();
  description.last_handover_at = state.last_handover.at;
  description.last_handover_took = state.last_handover.took;
  description.why = to_string(state.last_handover.cause);
  // For an empty seat: since when it is empty, and why.
  const auto& empty = state.vacancy.has_value() ? state.vacancy : state.emptied;
  if (empty.has_value() && std::ranges::none_of(state.consumers, &Consumer::holds_seat)) {
    description.last_handover_at = empty->since;
    description.why = to_string(empty->cause);
  }
  for (const Consumer& consumer : state.consumers) {
    const Link* link = find(consumer.member.connection);
    description.members.push_back(
        {.member = consumer.member,
         .ticket = consumer.ticket,
         .owner = consumer.owner,
         .status = consumer.status,
         .since = consumer.since,
         .epoch = consumer.epoch,
         .forgotten_at = link == nullptr ? std::nullopt : link->deadline});
  }
  return description;
}

}  // namespace baton
