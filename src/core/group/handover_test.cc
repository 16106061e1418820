// Scenarios 53 to 58 of the specification: what clients see, with the real machines on both sides
// and nothing in between. (59 needs records, and is an end-to-end test.)

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/group/machine.h"
#include "core/group/seat.h"

namespace baton {
namespace {

/// Clients subscribe to partitions of one stream; each is on a connection of its own unless told
/// otherwise. They answer step-downs at once, after storing their offset, unless they are silent.
class Handover : public ::testing::Test {
 protected:
  struct Place {
    GroupId group;
    MemberId member;
    auto operator<=>(const Place&) const = default;
  };
  struct Subscription {
    Seat seat;
    std::vector<std::string> updates;
    std::optional<GroupOffset> position;  // The next record the client would handle.
    bool silent = false;
  };

  static GroupId partition(std::uint32_t number) {
    return {.stream = "orders", .partition = number, .name = "billing"};
  }
  static MemberId member(std::uint64_t client, std::uint64_t connection) {
    return {{NodeId{1}, ConnectionNumber{connection}}, SubscriptionId{client}};
  }
  static MemberId member(std::uint64_t client) { return member(client, client); }

  void subscribe(const MemberId& who, std::uint32_t partitions) {
    const Ticket ticket{++tickets_};
    for (std::uint32_t i = 0; i < partitions; ++i) {
      const PartitionIndex index =
          partitions == 1 ? kSimple : PartitionIndex{static_cast<std::int32_t>(i)};
      seats_.emplace(
          Place{partition(i), who},
          Subscription{
              .seat = Seat({.ticket = ticket}), .updates = {}, .position = {}, .silent = false});
      ASSERT_TRUE(machine_
                      .register_consumer({.group = partition(i),
                                          .member = who,
                                          .ticket = ticket,
                                          .single_active = true,
                                          .partition_index = index,
                                          .owner = ""},
                                         now_)
                      .has_value());
    }
    pump();
  }
  void unsubscribe(const MemberId& who) {
    for (auto entry = seats_.begin(); entry != seats_.end();) {
      if (entry->first.member != who) {
        ++entry;
        continue;
      }
      machine_.unregister(entry->first.group, who, now_);
      entry = seats_.erase(entry);
    }
    pump();
  }
  void connection_dies(std::uint64_t number) {
    const ConnectionId connection{NodeId{1}, ConnectionNumber{number}};
    std::erase_if(seats_,
                  [&](const auto& entry) { return entry.first.member.connection == connection; });
    machine_.connection_down(connection, now_);
    pump();
  }

  void pump() {
    for (auto effects = machine_.take_effects(); !effects.empty();
         effects = machine_.take_effects()) {
      for (const auto& effect : effects.list) {
        if (const auto* up = std::get_if<CoordinatorEffects::Activate>(&effect)) {
          tell(*up, [&](Seat& seat) { return seat.on(*up, now_); });
        } else if (const auto* down = std::get_if<CoordinatorEffects::StepDown>(&effect)) {
          tell(*down, [&](Seat& seat) { return seat.on(*down, now_); });
        } else if (const auto* inform = std::get_if<CoordinatorEffects::Inform>(&effect)) {
          tell(*inform, [&](Seat& seat) { return seat.on(*inform); });
        }
      }
    }
  }
  template <class Told, class Hear>
  void tell(const Told& told, Hear hear) {
    const auto entry = seats_.find({told.group, told.member});
    if (entry != seats_.end()) act(*entry, hear(entry->second.seat));
  }
  void act(std::pair<const Place, Subscription>& entry, const SeatActions& actions) {
    auto& [place, self] = entry;
    if (actions.start_delivery) self.position = actions.from.value_or(GroupOffset{0});
    if (actions.reply.has_value()) {
      machine_.step_down_replied(place.group, place.member, *actions.reply, now_);
    }
    if (actions.ended.has_value()) machine_.unregister(place.group, place.member, now_);
    if (!actions.update.has_value()) return;
    self.updates.emplace_back(actions.update->active ? "active" : "not active");
    if (actions.update->stepping_down && !self.silent) finish(entry, actions.update->generation);
  }
  /// The client stores its position, and answers.
  void finish(std::pair<const Place, Subscription>& entry, Generation generation) {
    auto& [place, self] = entry;
    EXPECT_TRUE(machine_
                    .store_offset({.group = place.group,
                                   .holder = {{place.member, self.seat.epoch()}},
                                   .offset = *self.position,
                                   .may_rewind = false},
                                  now_)
                    .has_value());
    act(entry, self.seat.client_replied(generation, {}));
  }

  Subscription& at(std::uint32_t number, const MemberId& who) {
    return seats_.at({partition(number), who});
  }
  /// Which client delivers each of the partitions: "1 2 1" are the clients' numbers.
  std::string holders(std::uint32_t partitions) {
    std::string text;
    for (std::uint32_t i = 0; i < partitions; ++i) {
      std::string holder = "-";
      for (const auto& [place, self] : seats_) {
        if (place.group != partition(i) || !self.seat.delivering()) continue;
        EXPECT_EQ(holder, "-") << "two deliver partition " << i;
        holder = std::to_string(place.member.subscription.value);
      }
      text += (i == 0 ? "" : " ") + holder;
    }
    return text;
  }

  Coordinator machine_{{}, [](const CoordinatorFact&) {}};
  Instant now_{1'000'000'000'000};
  std::map<Place, Subscription> seats_;
  std::uint64_t tickets_ = 0;
};

TEST_F(Handover, Scenario53_AWaitingNewcomerHearsNothing) {
  subscribe(member(1), 1);
  subscribe(member(2), 1);
  EXPECT_EQ(at(0, member(1)).updates, (std::vector<std::string>{"active"}));
  EXPECT_TRUE(at(0, member(2)).updates.empty());
}

TEST_F(Handover, Scenario54_UpdatesAlternate) {
  for (const std::uint64_t client : {1, 2, 3}) subscribe(member(client), 3);
  unsubscribe(member(2));
  subscribe(member(4), 3);
  unsubscribe(member(3));
  for (const auto& [place, self] : seats_) {
    for (std::size_t i = 0; i < self.updates.size(); ++i) {
      EXPECT_EQ(self.updates[i], i % 2 == 0 ? "active" : "not active");
    }
  }
}

TEST_F(Handover, Scenario55_TheSuccessorStartsWhereTheFormerActiveStored) {
  subscribe(member(1), 2);
  EXPECT_EQ(at(1, member(1)).position, GroupOffset{0});
  at(1, member(1)).position = GroupOffset{1234};
  subscribe(member(2), 2);
  EXPECT_EQ(holders(2), "1 2");
  EXPECT_EQ(at(1, member(2)).position, GroupOffset{1234});
  // What the former consumer stores now comes too late.
  const auto late = machine_.store_offset({.group = partition(1),
                                           .holder = {{member(1), at(1, member(1)).seat.epoch()}},
                                           .offset = GroupOffset{9999},
                                           .may_rewind = false},
                                          now_);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::stale_epoch);
}

TEST_F(Handover, Scenario56_SeatsSpreadOverTheClientsAndBack) {
  subscribe(member(1), 3);
  EXPECT_EQ(holders(3), "1 1 1");
  subscribe(member(2), 3);
  EXPECT_EQ(holders(3), "1 2 1");
  subscribe(member(3), 3);
  EXPECT_EQ(holders(3), "1 2 3");
  unsubscribe(member(1));
  EXPECT_EQ(holders(3), "2 3 2");
  unsubscribe(member(3));
  EXPECT_EQ(holders(3), "2 2 2");
}

TEST_F(Handover, Scenario57_AConnectionWithTwoConsumersDies) {
  subscribe(member(1, 10), 1);
  subscribe(member(2, 10), 1);
  subscribe(member(3, 11), 1);
  connection_dies(10);
  EXPECT_EQ(holders(1), "3");
}

TEST_F(Handover, Scenario58_ASilentClientLosesItsSubscriptionAndTheSeatGoesOn) {
  subscribe(member(1), 2);
  at(1, member(1)).silent = true;
  subscribe(member(2), 2);
  EXPECT_EQ(holders(2), "1 -");
  now_ = now_ + limits::kHandoverTimeout;
  auto& entry = *seats_.find({partition(1), member(1)});
  EXPECT_EQ(entry.second.seat.deadline(), now_);
  act(entry, entry.second.seat.expire(now_));
  pump();
  EXPECT_EQ(holders(2), "1 2");
  const auto description = machine_.describe(partition(1));
  ASSERT_TRUE(description.has_value());
  EXPECT_EQ(description->members.size(), 1U);
  EXPECT_EQ(description->last_handover_took, limits::kHandoverTimeout);
}

}  // namespace
}  // namespace baton
