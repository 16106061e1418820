// What the scenarios do not cover: kinds of groups, offsets, deletion, recovery, descriptions,
// cost.
//
// More than 500 lines: all claims about one class.

#include "core/group/machine.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/group/rows.h"

namespace baton {
namespace {

using std::chrono::seconds;

const GroupId kGroup{.stream = "orders", .partition = 0, .name = "billing"};

MemberId member(std::uint64_t number) {
  return {{NodeId{number}, ConnectionNumber{number}}, SubscriptionId{1}};
}

class CoordinatorTest : public ::testing::Test {
 protected:
  Coordinator make(Coordinator::Options options = {}) {
    return {options, [this](const CoordinatorFact& fact) { journal_.push_back(fact); }};
  }
  ConsumerToRegister registration(std::uint64_t number, bool single_active = true) const {
    return {.group = kGroup,
            .member = member(number),
            .ticket = Ticket{number},
            .single_active = single_active,
            .partition_index = kSimple,
            .owner = fmt::format("worker {}", number)};
  }
  void add(std::uint64_t number, bool single_active = true) {
    ASSERT_TRUE(machine_.register_consumer(registration(number, single_active), now_).has_value());
  }
  Result<GroupOffset> store(std::uint64_t number, Generation epoch, std::uint64_t offset) {
    return machine_.store_offset({.group = kGroup,
                                  .holder = {{member(number), epoch}},
                                  .offset = GroupOffset{offset},
                                  .may_rewind = false},
                                 now_);
  }
  Result<GroupOffset> set(std::uint64_t offset) {
    return machine_.store_offset({.group = kGroup,
                                  .holder = std::nullopt,
                                  .offset = GroupOffset{offset},
                                  .may_rewind = true},
                                 now_);
  }
  Generation epoch_of(std::uint64_t number) const {
    return machine_.find(kGroup)->find(member(number))->epoch;
  }
  template <class T>
  static Errc code_of(const Result<T>& result) {
    return result.has_value() ? Errc{} : result.error().code;
  }

  std::vector<CoordinatorFact> journal_;
  Coordinator machine_ = make();
  Instant now_{1'000'000'000'000};
};

TEST_F(CoordinatorTest, SingleActiveAndPlainDoNotMix) {
  add(1);
  const auto refused = machine_.register_consumer(registration(2, false), now_);
  EXPECT_EQ(code_of(refused), Errc::failed_precondition);
  EXPECT_EQ(refused.error().text,
            "group 'orders/0 billing' has 1 consumers and is single-active: the two do not mix");
  EXPECT_EQ(machine_.find(kGroup)->consumers.size(), 1U);
}

TEST_F(CoordinatorTest, APlainGroupRefusesSingleActiveOnes) {
  add(1, false);
  add(2, false);
  EXPECT_EQ(code_of(machine_.register_consumer(registration(3), now_)), Errc::failed_precondition);
  // All consumers receive: none is told anything about a seat.
  for (const auto& effect : machine_.take_effects().list) {
    EXPECT_FALSE(std::holds_alternative<CoordinatorEffects::Activate>(effect));
  }
}

TEST_F(CoordinatorTest, AnEmptyGroupMayChangeItsKindAndKeepsWhatItKnows) {
  add(1);
  ASSERT_TRUE(store(1, epoch_of(1), 50).has_value());
  machine_.unregister(kGroup, member(1), now_);
  const auto begins = machine_.register_consumer(registration(2, false), now_);
  ASSERT_TRUE(begins.has_value());
  EXPECT_EQ(*begins, GroupOffset{50});
  machine_.connection_down(member(2).connection, now_);
  add(3);
  EXPECT_EQ(epoch_of(3), Generation{2});
}

TEST_F(CoordinatorTest, OffsetsAreTheSeatHoldersAlone) {
  add(1);
  add(2);
  EXPECT_EQ(store(1, epoch_of(1), 10), GroupOffset{10});
  EXPECT_EQ(code_of(store(2, epoch_of(1), 99)), Errc::stale_epoch);
  EXPECT_EQ(code_of(store(1, Generation{77}, 99)), Errc::stale_epoch);
  EXPECT_EQ(code_of(store(5, epoch_of(1), 99)), Errc::stale_epoch);
  EXPECT_EQ(code_of(set(99)), Errc::failed_precondition);
  EXPECT_EQ(machine_.query_offset(kGroup), GroupOffset{10});
  EXPECT_EQ(machine_.totals().stale_epochs_total, 3U);
}

TEST_F(CoordinatorTest, AStaleEpochNamesTheGroupAndTheGeneration) {
  add(1);
  EXPECT_EQ(store(1, Generation{9}, 1).error().text,
            "group 'orders/0 billing': epoch 9 of node 1 connection 1 subscription 1 is over; the "
            "generation is 1");
}

TEST_F(CoordinatorTest, ADeactivatingOneMayStillStore) {
  ConsumerToRegister first = registration(1);
  ConsumerToRegister second = registration(2);
  first.partition_index = second.partition_index = PartitionIndex{1};
  ASSERT_TRUE(machine_.register_consumer(first, now_).has_value());
  ASSERT_TRUE(machine_.register_consumer(second, now_).has_value());
  const auto& consumer = *machine_.find(kGroup)->find(member(1));
  ASSERT_EQ(to_string(consumer.status), "X");
  EXPECT_EQ(code_of(store(1, consumer.stepping, 10)), Errc::stale_epoch);
  EXPECT_EQ(store(1, consumer.epoch, 10), GroupOffset{10});
  machine_.step_down_replied(kGroup, member(1), consumer.stepping, now_);
  EXPECT_EQ(code_of(store(1, epoch_of(1), 11)), Errc::stale_epoch);
}

// A forgotten consumer may not know it yet; its successor reads from what is stored.
TEST_F(CoordinatorTest, AForgottenOneMayNotStore) {
  add(1);
  machine_.node_disconnected(NodeId{1}, now_, now_);
  EXPECT_EQ(store(1, epoch_of(1), 10), GroupOffset{10});
  machine_.expire(now_ + limits::kNodeLeaseCoordinator);
  EXPECT_EQ(code_of(store(1, epoch_of(1), 11)), Errc::stale_epoch);
}

TEST_F(CoordinatorTest, ASeatDoesNotGoBackButAnOperatorMay) {
  add(1);
  ASSERT_TRUE(store(1, epoch_of(1), 10).has_value());
  EXPECT_EQ(store(1, epoch_of(1), 7), GroupOffset{10});
  machine_.unregister(kGroup, member(1), now_);
  EXPECT_EQ(code_of(store(1, Generation{1}, 20)), Errc::stale_epoch);
  EXPECT_EQ(set(3), GroupOffset{3});
  EXPECT_EQ(machine_.query_offset(kGroup), GroupOffset{3});
}

TEST_F(CoordinatorTest, AnOffsetCanBeStoredBeforeAnybodyComes) {
  EXPECT_EQ(machine_.query_offset(kGroup), std::nullopt);
  EXPECT_EQ(set(42), GroupOffset{42});
  add(1);
  for (const auto& effect : machine_.take_effects().list) {
    if (const auto* told = std::get_if<CoordinatorEffects::Activate>(&effect)) {
      EXPECT_EQ(told->offset, GroupOffset{42});
    }
  }
}

TEST_F(CoordinatorTest, StoringWhatIsStoredMakesNoFact) {
  ASSERT_TRUE(set(42).has_value());
  const std::size_t facts = journal_.size();
  ASSERT_TRUE(set(42).has_value());
  EXPECT_EQ(journal_.size(), facts);
}

TEST_F(CoordinatorTest, AGroupWithNothingWorthKeepingVanishes) {
  add(1, false);
  machine_.unregister(kGroup, member(1), now_);
  EXPECT_EQ(machine_.find(kGroup), nullptr);
  EXPECT_TRUE(std::holds_alternative<GroupForgotten>(journal_.back()));
  EXPECT_EQ(machine_.totals().groups, 0U);
}

TEST_F(CoordinatorTest, OnlyAnEmptyGroupCanBeDeleted) {
  EXPECT_EQ(code_of(machine_.delete_group(kGroup)), Errc::not_found);
  add(1);
  EXPECT_EQ(machine_.delete_group(kGroup).error().text,
            "group 'orders/0 billing' has 1 consumers; only an empty one can be deleted");
  machine_.unregister(kGroup, member(1), now_);
  EXPECT_TRUE(machine_.delete_group(kGroup).has_value());
  EXPECT_EQ(machine_.find(kGroup), nullptr);
}

TEST_F(CoordinatorTest, DeletingAStreamClosesItsConsumersAndNobodyElses) {
  add(1);
  ConsumerToRegister other = registration(1);
  other.group = {.stream = "orders2", .partition = 0, .name = "billing"};
  ASSERT_TRUE(machine_.register_consumer(other, now_).has_value());
  other.group = {.stream = "orders", .partition = 7, .name = "audit"};
  ASSERT_TRUE(machine_.register_consumer(other, now_).has_value());
  machine_.take_effects();
  machine_.delete_stream("orders");
  std::size_t closed = 0;
  for (const auto& effect : machine_.take_effects().list) {
    const auto* told = std::get_if<CoordinatorEffects::Closed>(&effect);
    ASSERT_NE(told, nullptr);  // The connection still has its other group, and is still watched.
    EXPECT_EQ(told->reason.text, "the stream 'orders' was deleted");
    ++closed;
  }
  EXPECT_EQ(closed, 2U);
  EXPECT_EQ(machine_.list("").size(), 1U);
  EXPECT_EQ(machine_.totals().groups, 1U);
  EXPECT_EQ(machine_.totals().consumers, 1U);
}

TEST_F(CoordinatorTest, AListGoesOnBehindAGroup) {
  const std::vector<GroupId> groups{
      {"a", 0, "x"}, {"a", 1, "x"}, {"b", 0, "x"}, {"b", 0, "y"}, {"b", 10, "x"}};
  for (const GroupId& group : groups) {
    ASSERT_TRUE(machine_
                    .store_offset({.group = group,
                                   .holder = std::nullopt,
                                   .offset = GroupOffset{0},
                                   .may_rewind = false},
                                  now_)
                    .has_value());
  }
  const auto listed = [&](std::string_view stream, const std::optional<GroupId>& after,
                          std::size_t most) {
    std::vector<GroupId> found;
    for (const GroupDescription& group : machine_.list(stream, after, most)) {
      found.push_back(group.group);
    }
    return found;
  };
  EXPECT_EQ(listed("", {}, 100), groups);
  EXPECT_EQ(listed("", groups[1], 2), (std::vector{groups[2], groups[3]}));
  EXPECT_EQ(listed("b", groups[0], 1), std::vector{groups[2]});
  EXPECT_EQ(listed("b", groups[3], 9), std::vector{groups[4]});
  EXPECT_EQ(listed("a", groups[1], 9), std::vector<GroupId>{});
  // A group that was deleted since.
  EXPECT_EQ(listed("", GroupId{"b", 0, "xx"}, 1), std::vector{groups[3]});
}

TEST_F(CoordinatorTest, ANewStartUnderTheSameIdReplacesTheFormerOne) {
  add(1);
  add(2);
  ConsumerToRegister again = registration(1);
  again.ticket = Ticket{3};
  machine_.take_effects();
  ASSERT_TRUE(machine_.register_consumer(again, now_).has_value());
  const auto& consumers = machine_.find(kGroup)->consumers;
  ASSERT_EQ(consumers.size(), 2U);
  EXPECT_EQ(consumers[0].member, member(2));
  EXPECT_EQ(to_string(consumers[0].status), "A");
  EXPECT_EQ(to_string(consumers[1].status), "W");
}

// Partitions on other shards register the consumers in another order, and must still agree.
TEST_F(CoordinatorTest, ConsumersAreOrderedByTicket) {
  for (const std::uint64_t number : {3, 1, 2}) add(number);
  std::vector<std::uint64_t> tickets;
  for (const auto& consumer : machine_.find(kGroup)->consumers) {
    tickets.push_back(consumer.ticket.value);
  }
  EXPECT_EQ(tickets, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(CoordinatorTest, NobodyRegistersOverAConnectionThatIsNotChecked) {
  add(1);
  machine_.node_disconnected(NodeId{1}, now_, now_);
  ConsumerToRegister more = registration(1);
  more.member.subscription = SubscriptionId{2};
  EXPECT_EQ(code_of(machine_.register_consumer(more, now_)), Errc::unavailable);
  machine_.connection_reconnected(member(1).connection, now_);
  EXPECT_TRUE(machine_.register_consumer(more, now_).has_value());
}

TEST_F(CoordinatorTest, LimitsAreNamed) {
  ConsumerToRegister bad = registration(1);
  bad.group.name.assign(limits::kGroupNameBytes + 1, 'g');
  EXPECT_EQ(machine_.register_consumer(bad, now_).error().text,
            "the group's name has 201 bytes; 1 to 200 are allowed");
  bad = registration(1);
  bad.partition_index = PartitionIndex{-2};
  EXPECT_EQ(code_of(machine_.register_consumer(bad, now_)), Errc::invalid_argument);
  bad = registration(1);
  bad.owner.assign(limits::kOwnerLabelBytes + 1, 'o');
  EXPECT_EQ(code_of(machine_.register_consumer(bad, now_)), Errc::invalid_argument);

  machine_ = make({.groups_max = 1, .consumers_per_group_max = 2});
  add(1);
  add(2);
  EXPECT_EQ(machine_.register_consumer(registration(3), now_).error().text,
            "group 'orders/0 billing' has 2 consumers, as many as it may");
  bad = registration(3);
  bad.group.name = "other";
  EXPECT_EQ(machine_.register_consumer(bad, now_).error().text,
            "group 'orders/0 other': the shard has 1 groups, as many as it may");
}

TEST_F(CoordinatorTest, ADescriptionSaysWhoHasTheSeatAndWhy) {
  add(1);
  now_ = now_ + seconds{1};
  add(2);
  ASSERT_TRUE(store(1, epoch_of(1), 10).has_value());
  machine_.node_disconnected(NodeId{1}, now_, now_);
  EXPECT_EQ(machine_.totals().groups_without_active, 1U);
  EXPECT_TRUE(machine_.describe(kGroup)->frozen);
  EXPECT_EQ(machine_.describe(kGroup)->members[0].forgotten_at, now_ + seconds{5});
  now_ = now_ + seconds{5};
  EXPECT_EQ(machine_.next_deadline(), now_);
  machine_.expire(now_);
  EXPECT_EQ(machine_.next_deadline(), Instant::never());

  const auto description = machine_.describe(kGroup);
  ASSERT_TRUE(description.has_value());
  EXPECT_EQ(description->generation, Generation{2});
  EXPECT_EQ(description->offset, GroupOffset{10});
  EXPECT_EQ(description->why, "the node of the former one was lost");
  EXPECT_EQ(description->last_handover_took, seconds{5});
  ASSERT_EQ(description->members.size(), 2U);
  EXPECT_EQ(to_string(description->members[0].status), "fA");
  EXPECT_EQ(to_string(description->members[1].status), "A");
  EXPECT_EQ(description->members[1].owner, "worker 2");
  EXPECT_EQ(description->members[1].since, now_);
  EXPECT_EQ(machine_.totals().groups_without_active, 0U);
  EXPECT_EQ(machine_.list("orders").size(), 1U);
  EXPECT_TRUE(machine_.list("order").empty());
}

// "Nobody, since T, because": when and why the seat became empty.
TEST_F(CoordinatorTest, ADescriptionSaysSinceWhenASeatIsEmptyAndWhy) {
  add(1);
  const Instant activated = now_;
  ASSERT_TRUE(store(1, epoch_of(1), 10).has_value());
  EXPECT_EQ(machine_.describe(kGroup)->last_handover_at, activated);
  EXPECT_EQ(machine_.describe(kGroup)->why, "the first consumer registered");
  now_ = now_ + seconds{7};
  machine_.unregister(kGroup, member(1), now_);
  EXPECT_EQ(machine_.describe(kGroup)->last_handover_at, now_);
  EXPECT_EQ(machine_.describe(kGroup)->why, "the former one unsubscribed");
  now_ = now_ + seconds{3};
  add(2);
  EXPECT_EQ(machine_.describe(kGroup)->last_handover_at, now_);
  EXPECT_EQ(machine_.describe(kGroup)->why, "the first consumer registered");
}

TEST_F(CoordinatorTest, WatchesFollowConnectionsAndNodes) {
  const auto count = [&]<class Effect>(Effect) {
    const CoordinatorEffects effects = machine_.take_effects();
    return std::ranges::count_if(
        effects.list, [](const auto& effect) { return std::holds_alternative<Effect>(effect); });
  };
  add(1);
  EXPECT_EQ(count(CoordinatorEffects::WatchNode{}), 1);
  ConsumerToRegister sibling = registration(1);
  sibling.member.subscription = SubscriptionId{2};
  sibling.ticket = Ticket{2};
  ASSERT_TRUE(machine_.register_consumer(sibling, now_).has_value());
  EXPECT_EQ(count(CoordinatorEffects::WatchConnection{}), 0);
  machine_.unregister(kGroup, member(1), now_);
  EXPECT_EQ(count(CoordinatorEffects::UnwatchConnection{}), 0);
  EXPECT_EQ(machine_.known_nodes(), std::vector<NodeId>{NodeId{1}});
  machine_.unregister(kGroup, sibling.member, now_);
  EXPECT_EQ(count(CoordinatorEffects::UnwatchNode{}), 1);
  EXPECT_TRUE(machine_.known_nodes().empty());
}

TEST_F(CoordinatorTest, RecoveryFromRowsAndFactsGoesOnWhereItStopped) {
  add(1);
  ASSERT_TRUE(store(1, epoch_of(1), 10).has_value());
  RowBatch rows;
  machine_.append_changed_rows(rows);
  EXPECT_TRUE(machine_.changed_groups().empty());
  const std::size_t sealed = journal_.size();
  machine_.connection_down(member(1).connection, now_);
  add(2);
  ASSERT_TRUE(store(2, epoch_of(2), 20).has_value());

  const std::vector<CoordinatorFact> after(journal_.begin() + static_cast<std::ptrdiff_t>(sealed),
                                           journal_.end());
  Coordinator recovered = make();
  for (const RowChange& change : rows.changes()) {
    ASSERT_EQ(change.table, tables::kGroups);
    ASSERT_TRUE(recovered.load({change.key, change.value}).has_value());
  }
  for (const CoordinatorFact& fact : after) recovered.apply(fact);
  recovered.become_leader(now_);
  EXPECT_EQ(recovered.find(kGroup)->record, machine_.find(kGroup)->record);
  EXPECT_TRUE(recovered.find(kGroup)->consumers.empty());
  EXPECT_EQ(recovered.changed_groups().size(), 1U);

  machine_ = recovered;
  add(3);
  EXPECT_EQ(epoch_of(3), Generation{3});
}

TEST_F(CoordinatorTest, AForgottenGroupsRowIsErased) {
  ASSERT_TRUE(set(1).has_value());
  RowBatch first;
  machine_.append_changed_rows(first);
  ASSERT_TRUE(machine_.delete_group(kGroup).has_value());
  RowBatch second;
  machine_.append_changed_rows(second);
  ASSERT_EQ(second.changes().size(), 1U);
  EXPECT_EQ(second.changes()[0].kind, RowChange::Kind::erase);
  EXPECT_EQ(second.changes()[0].key, first.changes()[0].key);
}

// A bug seen in another broker: an index entry whose group is gone brought the coordinator down.
TEST_F(CoordinatorTest, AnIndexEntryWithoutItsGroupIsHarmless) {
  add(1);
  add(2);
  machine_.apply(GroupForgotten{kGroup});
  machine_.node_disconnected(NodeId{1}, now_, now_);
  machine_.expire(now_ + seconds{5});
  machine_.node_up(NodeId{1});
  machine_.connection_reconnected(member(1).connection, now_);
  machine_.become_leader(now_);
  machine_.connection_down(member(1).connection, now_);
  const NodeId purged{2};
  machine_.nodes_purged({&purged, 1}, now_);
  EXPECT_TRUE(machine_.known_nodes().empty());
  EXPECT_EQ(machine_.totals().consumers, 0U);
}

// A bug seen in another broker: every reconnect touched every group.
TEST_F(CoordinatorTest, AnEventTouchesOnlyTheGroupsOfItsConnection) {
  constexpr std::uint64_t kGroups = 10'000;
  for (std::uint64_t i = 0; i < kGroups; ++i) {
    ConsumerToRegister one = registration(i);
    one.group.name = fmt::format("group {}", i);
    // All connections on one node, as they are in a broker of one process.
    one.member.connection.node = NodeId{1};
    ASSERT_TRUE(machine_.register_consumer(one, now_).has_value());
  }
  const auto touched_by = [&](auto event) {
    const std::uint64_t before = machine_.totals().groups_touched_total;
    event();
    return machine_.totals().groups_touched_total - before;
  };
  const ConnectionId connection{NodeId{1}, ConnectionNumber{77}};
  EXPECT_EQ(touched_by([&] { machine_.connection_reconnected(connection, now_); }), 1U);
  EXPECT_EQ(touched_by([&] { machine_.connection_down(connection, now_); }), 1U);
  EXPECT_EQ(touched_by([&] { machine_.disconnect_timer(connection, now_); }), 0U);
  EXPECT_EQ(touched_by([&] { machine_.node_disconnected(NodeId{2}, now_, now_); }), 0U);
  EXPECT_EQ(machine_.totals().groups_without_active, 0U);
}

// A consumer from before the restart may be at work, cut off, under a lease unknown here.
TEST_F(CoordinatorTest, AStrictGroupFillsItsSeatOnlyWhenTheLeasesOfBeforeAreOver) {
  ConsumerToRegister strict = registration(1);
  strict.handover = Handover::strict;
  strict.has_lease = true;
  ASSERT_TRUE(machine_.register_consumer(strict, now_).has_value());
  EXPECT_EQ(epoch_of(1), Generation{1});  // A new group does not wait.
  const std::string row = encode_row(machine_.find(kGroup)->record);

  machine_ = make();
  ASSERT_TRUE(machine_.load({group_row_key(kGroup), row}).has_value());
  machine_.become_leader(now_);
  strict.member = member(2);
  strict.handover.reset();  // The group's kind, which is remembered.
  ASSERT_TRUE(machine_.register_consumer(strict, now_).has_value());
  EXPECT_EQ(epoch_of(2), Generation{});
  EXPECT_EQ(machine_.next_deadline(), now_ + seconds{5});
  machine_.expire(now_ + seconds{4});
  EXPECT_EQ(epoch_of(2), Generation{});
  machine_.expire(now_ + seconds{5});
  EXPECT_EQ(epoch_of(2), Generation{2});
  EXPECT_EQ(machine_.next_deadline(), Instant::never());
}

TEST_F(CoordinatorTest, ALostConnectionKeepsTheSeatOfAStrictGroupUntilItsLeaseEnds) {
  for (const std::uint64_t number : {1, 2}) {
    ConsumerToRegister strict = registration(number);
    strict.handover = Handover::strict;
    strict.has_lease = true;
    ASSERT_TRUE(machine_.register_consumer(strict, now_).has_value());
  }
  machine_.connection_lost(member(1).connection, now_ + seconds{3}, now_);
  EXPECT_EQ(epoch_of(2), Generation{});
  EXPECT_EQ(machine_.next_deadline(), now_ + seconds{3});
  // It cannot return: its client opens another connection.
  machine_.connection_reconnected(member(1).connection, now_);
  machine_.expire(now_ + seconds{2});
  EXPECT_EQ(epoch_of(2), Generation{});
  machine_.expire(now_ + seconds{3});
  EXPECT_EQ(epoch_of(2), Generation{2});
  EXPECT_EQ(machine_.find(kGroup)->consumers.size(), 1U);
  EXPECT_EQ(machine_.find(member(1).connection), nullptr);
  // A consumer that waits holds no seat to wait for.
  ConsumerToRegister third = registration(3);
  third.has_lease = true;
  ASSERT_TRUE(machine_.register_consumer(third, now_).has_value());
  machine_.connection_lost(member(3).connection, now_ + seconds{9}, now_ + seconds{4});
  EXPECT_EQ(machine_.find(kGroup)->consumers.size(), 1U);
}

TEST_F(CoordinatorTest, AnyOtherGroupGivesTheSeatOfALostConnectionAwayAtOnce) {
  add(1);
  add(2);
  machine_.connection_lost(member(1).connection, now_ + seconds{3}, now_);
  EXPECT_EQ(epoch_of(2), Generation{2});
}

}  // namespace
}  // namespace baton
