#include "core/group/machine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace baton {

using coordinator_state::Consumer;

namespace {

/// The group's kind of hand-over once this consumer has registered.
Handover handover_of(const ConsumerToRegister& registration,
                     const coordinator_state::Group* group) {
  if (!registration.single_active) return Handover::at_once;
  const Handover known = group == nullptr ? Handover::at_once : group->record.handover;
  return registration.handover.value_or(known);
}

}  // namespace

Coordinator::Coordinator(Options options, Recorder recorder)
    : options_(options), recorder_(std::move(recorder)) {}

Status Coordinator::check_room(const GroupId& group) const {
  BATON_TRY_STATUS(validate(group));
  if (groups_.size() >= options_.groups_max && find(group) == nullptr) {
    return Error{Errc::resource_exhausted,
                 fmt::format("group '{}': the shard has {} groups, as many as it may",
                             to_string(group), groups_.size())};
  }
  return {};
}

Status Coordinator::refusal(const ConsumerToRegister& registration) const {
  BATON_TRY_STATUS(check_room(registration.group));
  if (registration.owner.size() > limits::kOwnerLabelBytes) {
    return Error{Errc::invalid_argument,
                 fmt::format("the owner's label has {} bytes; {} are allowed",
                             registration.owner.size(), limits::kOwnerLabelBytes)};
  }
  if (registration.partition_index < kSimple) {
    return Error{Errc::invalid_argument,
                 fmt::format("partition index {}; the lowest is {}",
                             registration.partition_index.value, kSimple.value)};
  }
  // Its deadline still runs: a consumer added now would be treated as one that was cut off.
  const Link* known = find(registration.member.connection);
  if (known != nullptr && known->connectivity != Connectivity::connected) {
    return Error{Errc::unavailable,
                 fmt::format("{}: the connection is back, but not checked yet; try again",
                             to_string(registration.member))};
  }
  const Group* group = find(registration.group);
  if (!registration.has_lease && handover_of(registration, group) == Handover::strict) {
    return Error{Errc::failed_precondition,
                 fmt::format("group '{}' hands over strictly: its consumers must send heartbeats",
                             to_string(registration.group))};
  }
  if (group == nullptr || group->consumers.empty()) return {};
  const std::string name = to_string(registration.group);
  if (group->record.single_active != registration.single_active) {
    return Error{
        Errc::failed_precondition,
        fmt::format("group '{}' has {} consumers and {} single-active: the two do not mix", name,
                    group->consumers.size(), group->record.single_active ? "is" : "is not")};
  }
  if (registration.handover.value_or(group->record.handover) != group->record.handover) {
    return Error{
        Errc::failed_precondition,
        fmt::format("group '{}' has {} consumers and hands over {}: handover must be the same for "
                    "all of them",
                    name, group->consumers.size(), to_string(group->record.handover))};
  }
  if (group->record.partition_index != registration.partition_index) {
    return Error{Errc::failed_precondition, fmt::format("group '{}' has partition index {}, not {}",
                                                        name, group->record.partition_index.value,
                                                        registration.partition_index.value)};
  }
  if (group->consumers.size() >= options_.consumers_per_group_max &&
      group->find(registration.member) == nullptr) {
    return Error{Errc::resource_exhausted,
                 fmt::format("group '{}' has {} consumers, as many as it may", name,
                             group->consumers.size())};
  }
  return {};
}

Result<std::optional<GroupOffset>> Coordinator::register_consumer(
    const ConsumerToRegister& registration, Instant now) {
  BATON_TRY_STATUS(refusal(registration));
  const Group* group = find(registration.group);
  const Consumer* known = group == nullptr ? nullptr : group->find(registration.member);
  if (known == nullptr || known->ticket != registration.ticket) {
    admit(registration, now);
    evaluate(registration.group, now);
  }
  return query_offset(registration.group);
}

void Coordinator::admit(const ConsumerToRegister& registration, Instant now) {
  const Group* known = find(registration.group);
  const Handover handover = handover_of(registration, known);
  if (known == nullptr || known->record.single_active != registration.single_active ||
      known->record.partition_index != registration.partition_index ||
      known->record.handover != handover) {
    commit(GroupCreated{.group = registration.group,
                        .single_active = registration.single_active,
                        .partition_index = registration.partition_index,
                        .handover = handover});
  }
  auto& entry = *groups_.find(registration.group);
  // The client has ended the former subscription, or it could not use its id again.
  remove_if(entry, Cause::unregistered, now,
            [&](const Consumer& consumer) { return consumer.member == registration.member; });
  std::vector<Consumer>& consumers = entry.second.consumers;
  const auto place =
      std::ranges::upper_bound(consumers, registration.ticket, {}, &Consumer::ticket);
  consumers.insert(place, Consumer{.member = registration.member,
                                   .ticket = registration.ticket,
                                   .owner = registration.owner,
                                   .status = {},
                                   .since = now,
                                   .epoch = {},
                                   .stepping = {}});
  ++totals_.consumers;
  link(registration.group, registration.member.connection);
}

void Coordinator::unregister(const GroupId& group, const MemberId& member, Instant now) {
  const auto entry = groups_.find(group);
  if (entry == groups_.end() || entry->second.find(member) == nullptr) return;
  remove_if(*entry, Cause::unregistered, now,
            [&](const Consumer& consumer) { return consumer.member == member; });
  evaluate(group, now);
}

void Coordinator::step_down_replied(const GroupId& group, const MemberId& member,
                                    Generation generation, Instant now) {
  const auto entry = groups_.find(group);
  if (entry == groups_.end()) return;
  for (Consumer& consumer : entry->second.consumers) {
    if (consumer.member != member || consumer.status.activity != Activity::deactivating ||
        consumer.stepping != generation) {
      continue;
    }
    set_status(consumer, {consumer.status.connectivity, Activity::waiting}, now);
    evaluate(group, now);
    return;
  }
}

Status Coordinator::evaluate_group(const GroupId& group, std::span<const ConnectionId> dead,
                                   Instant now) {
  const auto entry = groups_.find(group);
  if (entry == groups_.end()) {
    return Error{Errc::not_found, fmt::format("there is no group '{}'", to_string(group))};
  }
  remove_if(*entry, Cause::operator_evaluated, now, [&](const Consumer& consumer) {
    return !consumer.connected() ||
           std::ranges::find(dead, consumer.member.connection) != dead.end();
  });
  evaluate(group, now);
  return {};
}

void Coordinator::evaluate(const GroupId& group, Instant now) {
  const auto entry = groups_.find(group);
  if (entry == groups_.end()) return;
  ++totals_.groups_touched_total;
  Group& state = entry->second;
  if (state.consumers.empty() && state.vacancy.has_value()) {
    state.emptied = std::exchange(state.vacancy, std::nullopt);
  }
  if (state.record.single_active) settle_seat(*entry, now);
  count_without_active(state);
  if (is_worthless(state)) commit(GroupForgotten{group});
}

void Coordinator::settle_seat(Groups::value_type& entry, Instant now) {
  Group& group = entry.second;
  // A consumer that cannot be told to stop may still be receiving: its lease has to run out.
  if (group.frozen()) return;
  // A consumer has been told to stop: its answer, its leaving or its death leads here again.
  if (std::ranges::any_of(group.consumers, [](const Consumer& consumer) {
        return consumer.is(Connectivity::connected, Activity::deactivating);
      })) {
    return;
  }
  const Consumer* target = group.target();
  const Consumer* active = group.connected_active();
  if (target == nullptr || target == active) return;
  if (active == nullptr) {
    if (hold_back(entry, now)) return;
    activate(entry, group.consumers[static_cast<std::size_t>(target - group.consumers.data())],
             now);
  } else if (group.record.partition_index != kSimple) {
    step_down(entry, group.consumers[static_cast<std::size_t>(active - group.consumers.data())],
              now);
  }
}

bool Coordinator::hold_back(const Groups::value_type& entry, Instant now) {
  const Record& record = entry.second.record;
  // Consumers activated by this coordinator are known, and so are their leases.
  if (record.handover != Handover::strict || record.generation == Generation{} ||
      entry.second.seated || now >= leases_of_others_until_) {
    return false;
  }
  held_back_.insert(entry.first);
  return true;
}

void Coordinator::activate(Groups::value_type& entry, Consumer& consumer, Instant now) {
  Group& group = entry.second;
  BATON_ASSERT(consumer.is(Connectivity::connected, Activity::waiting));
  // Two seats would be a double delivery. A consumer that is forgotten has stopped by its own
  // lease.
  BATON_ASSERT(std::ranges::none_of(group.consumers, &Consumer::holds_seat));
  group.seated = true;
  consumer.epoch = take_generation(entry, now);
  set_status(consumer, {Connectivity::connected, Activity::active}, now);
  const coordinator_state::Vacancy vacancy =
      group.vacancy.value_or(coordinator_state::Vacancy{now, Cause::first_consumer});
  group.last_handover = {.at = now, .took = now - vacancy.since, .cause = vacancy.cause};
  group.vacancy.reset();
  group.emptied.reset();
  ++totals_.activations_total;
  const auto bucket = std::ranges::lower_bound(kHandoverBounds, group.last_handover.took);
  ++totals_.handovers.at(static_cast<std::size_t>(bucket - kHandoverBounds.begin()));
  totals_.handovers_took += group.last_handover.took;
  say_again(entry, consumer);
}

void Coordinator::step_down(Groups::value_type& entry, Consumer& consumer, Instant now) {
  BATON_ASSERT(consumer.is(Connectivity::connected, Activity::active));
  vacate(entry.second, Cause::rebalanced, now);
  consumer.stepping = take_generation(entry, now);
  set_status(consumer, {Connectivity::connected, Activity::deactivating}, now);
  ++totals_.step_downs_total;
  say_again(entry, consumer);
}

void Coordinator::say_again(const Groups::value_type& entry, const Consumer& consumer) {
  const auto& [group, state] = entry;
  if (consumer.status.activity == Activity::active) {
    effects_.list.emplace_back(CoordinatorEffects::Activate{group, consumer.member, consumer.ticket,
                                                            consumer.epoch, state.record.offset});
  } else if (consumer.status.activity == Activity::deactivating) {
    effects_.list.emplace_back(
        CoordinatorEffects::StepDown{group, consumer.member, consumer.ticket, consumer.stepping});
  }
}

Generation Coordinator::take_generation(const Groups::value_type& entry, Instant now) {
  const Generation next{entry.second.record.generation.value + 1};
  commit(GenerationTaken{entry.first, next, now});
  return next;
}

void Coordinator::remove_if(Groups::value_type& entry, Cause cause, Instant now,
                            const Condition& condition) {
  std::vector<Consumer>& consumers = entry.second.consumers;
  std::set<ConnectionId> left;
  for (const Consumer& consumer : consumers) {
    if (!condition(consumer)) continue;
    left.insert(consumer.member.connection);
    if (consumer.holds_seat()) vacate(entry.second, cause, now);
  }
  totals_.consumers -= std::erase_if(consumers, condition);
  for (const ConnectionId connection : left) {
    const Link* known = find(connection);
    // The connection was cut off when an operator dropped it: if it returns, it has to be told.
    const bool may_return = cause == Cause::operator_evaluated && known != nullptr &&
                            known->connectivity != Connectivity::connected && !known->gone;
    if (!may_return) unlink(entry, connection);
  }
}

void Coordinator::set_status(Consumer& consumer, ConsumerStatus status, Instant now) {
  if (consumer.status == status) return;
  consumer.status = status;
  consumer.since = now;
}

void Coordinator::vacate(Group& group, Cause cause, Instant now) {
  if (!group.vacancy.has_value()) group.vacancy = {now, cause};
}

void Coordinator::count_without_active(Group& group) {
  const bool without =
      group.record.single_active && !group.consumers.empty() && group.connected_active() == nullptr;
  if (without && !group.without_active) ++totals_.groups_without_active;
  if (!without && group.without_active) --totals_.groups_without_active;
  group.without_active = without;
}

}  // namespace baton
