#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/group/machine.h"

/// For tests: transcripts in the notation of the specification. A group is `simple[x.0:A y.1:W]` or
/// `super(1)[...]`, a member `connection.subscription:STATUS`. Every event returns the group
/// afterwards and the consumers that were told something: "[y.1:A] -> ACT y.1", or "gone -> 0".
namespace baton::scenario {

struct Member {
  std::string name;  // "x.0"
  std::string status;
};

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class Scenario : public ::testing::Test {
 protected:
  const GroupId kGroup{.stream = "orders", .partition = 1, .name = "billing"};

  Scenario() : machine_({}, [this](const CoordinatorFact& fact) { record(fact); }) {}

  // Given.
  /// Puts connections on one node; every other connection has a node of its own.
  void on_one_node(std::string_view connections) {
    const NodeId node = next_node();
    for (const std::string& name : split(connections, ' ')) add_connection(name, node);
  }
  /// Brings the group into that state, by possible events.
  void given(std::string_view text) {
    index_ = text.starts_with("simple") ? kSimple : PartitionIndex{text[6] - '0'};
    const std::size_t open = text.find('[');
    std::vector<Member> wanted;
    for (const std::string& word : split(text.substr(open + 1, text.size() - open - 2), ' ')) {
      const std::size_t colon = word.find(':');
      wanted.push_back({word.substr(0, colon), word.substr(colon + 1)});
      tickets_[wanted.back().name] = Ticket{++last_ticket_};
    }
    build(wanted);
    machine_.take_effects();
    ASSERT_EQ(state(), text.substr(open));
  }
  void given_empty(PartitionIndex index) { index_ = index; }

  // When.
  std::string registers(const std::string& name) {
    EXPECT_TRUE(try_register(name, index_).has_value());
    return outcome();
  }
  Result<std::optional<GroupOffset>> try_register(const std::string& name, PartitionIndex index) {
    if (!tickets_.contains(name)) tickets_[name] = Ticket{++last_ticket_};
    return machine_.register_consumer({.group = kGroup,
                                       .member = member(name),
                                       .ticket = tickets_[name],
                                       .single_active = true,
                                       .partition_index = index,
                                       .owner = name},
                                      now_);
  }
  std::string unregisters(const std::string& name) {
    tickets_.erase(name);
    machine_.unregister(kGroup, member(name), now_);
    return outcome();
  }
  /// The step-down reply with the right generation.
  std::string replies(const std::string& name) {
    machine_.step_down_replied(kGroup, member(name), consumer(name).stepping, now_);
    return outcome();
  }
  std::string replies(const std::string& name, Generation generation) {
    machine_.step_down_replied(kGroup, member(name), generation, now_);
    return outcome();
  }
  std::string down(const std::string& name) {
    machine_.connection_down(connection(name), now_);
    return outcome();
  }
  /// The link to the node of this connection breaks.
  std::string node_lost(const std::string& name) {
    machine_.node_disconnected(connection(name).node, now_, now_);
    return outcome();
  }
  std::string node_up(const std::string& name) {
    machine_.node_up(connection(name).node);
    return outcome();
  }
  /// The node is back, and the connection has answered.
  std::string back(const std::string& name) {
    machine_.connection_reconnected(connection(name), now_);
    return outcome();
  }
  /// The disconnect timer fires, in time.
  std::string timer(const std::string& name) {
    now_ = now_ + limits::kNodeLeaseCoordinator;
    machine_.disconnect_timer(connection(name), now_);
    return outcome();
  }
  std::string evaluated(const std::vector<std::string>& dead) {
    std::vector<ConnectionId> connections;
    for (const std::string& name : dead) connections.push_back(connection(name));
    EXPECT_TRUE(machine_.evaluate_group(kGroup, connections, now_).has_value());
    return outcome();
  }
  std::string purged(const std::string& name) {
    const NodeId node = connection(name).node;
    machine_.nodes_purged({&node, 1}, now_);
    return outcome();
  }

  // Then.
  std::string outcome() {
    const CoordinatorEffects effects = machine_.take_effects();
    checks_.clear();
    watches_.clear();
    timers_.clear();
    std::string said;
    for (const auto& effect : effects.list) {
      std::visit([&](const auto& what) { note(what, said); }, effect);
    }
    return state() + " ->" + (said.empty() ? " 0" : said);
  }
  std::string state() const {
    const coordinator_state::Group* group = machine_.find(kGroup);
    if (group == nullptr || group->consumers.empty()) return "gone";
    std::string text;
    for (const coordinator_state::Consumer& consumer : group->consumers) {
      text += fmt::format("{}{}:{}", text.empty() ? "[" : " ", name_of(consumer.member),
                          to_string(consumer.status));
    }
    return text + "]";
  }
  const coordinator_state::Consumer& consumer(const std::string& name) const {
    return *machine_.find(kGroup)->find(member(name));
  }
  Generation generation() const { return machine_.find(kGroup)->record.generation; }

  ConnectionId connection(const std::string& name) const {
    const std::string letter = name.substr(0, name.find('.'));
    if (!connections_.contains(letter)) {
      const_cast<Scenario*>(this)->add_connection(letter, next_node());
    }
    return connections_.at(letter);
  }
  MemberId member(const std::string& name) const {
    const auto number = static_cast<std::uint64_t>(name.at(name.find('.') + 1) - '0');
    return {connection(name), SubscriptionId{number}};
  }

  Coordinator machine_;
  Instant now_{1'000'000'000'000};
  Generation told_;                   // By the last Activate, StepDown or Inform.
  std::vector<std::string> checks_;   // Of the last event.
  std::vector<std::string> watches_;  // Of the last event.
  std::vector<std::pair<std::string, Instant>> timers_;
  std::vector<CoordinatorFact> facts_;

 private:
  void record(const CoordinatorFact& fact) {
    facts_.push_back(fact);
    if (const auto* taken = std::get_if<GenerationTaken>(&fact)) durable_ = taken->generation;
  }
  NodeId next_node() const { return NodeId{connections_.size() + 1}; }
  void add_connection(const std::string& letter, NodeId node) {
    connections_.emplace(letter, ConnectionId{node, ConnectionNumber{connections_.size() + 1}});
  }
  std::string letter_of(ConnectionId connection) const {
    for (const auto& [letter, known] : connections_) {
      if (known == connection) return letter;
    }
    return "?";
  }
  std::string name_of(const MemberId& member) const {
    return fmt::format("{}.{}", letter_of(member.connection), member.subscription.value);
  }

  void say(std::string_view what, const MemberId& member, Generation generation,
           std::string& said) {
    said += fmt::format("{} {} {}", said.empty() ? "" : ",", what, name_of(member));
    told_ = generation;
    // Without the record, the same could be told to another consumer after a crash.
    EXPECT_GE(durable_, generation);
  }
  void note(const CoordinatorEffects::Activate& told, std::string& said) {
    say("ACT", told.member, told.generation, said);
  }
  void note(const CoordinatorEffects::StepDown& told, std::string& said) {
    say("DOWN", told.member, told.generation, said);
  }
  void note(const CoordinatorEffects::Inform& told, std::string& said) {
    say("INFORM", told.member, told.generation, said);
  }
  void note(const CoordinatorEffects::Closed& told, std::string& said) {
    say("CLOSED", told.member, Generation{}, said);
  }
  void note(const CoordinatorEffects::Unknown& what, std::string& said) {
    said += " UNKNOWN " + letter_of(what.connection);
  }
  void note(const CoordinatorEffects::Check& what, std::string&) {
    checks_.push_back(letter_of(what.connection));
  }
  void note(const CoordinatorEffects::WatchConnection& what, std::string&) {
    watches_.push_back(letter_of(what.connection));
  }
  void note(const CoordinatorEffects::SetTimer& what, std::string&) {
    timers_.emplace_back(letter_of(what.connection), what.at);
  }
  void note(const CoordinatorEffects::UnwatchConnection&, std::string&) {}
  void note(const CoordinatorEffects::WatchNode&, std::string&) {}
  void note(const CoordinatorEffects::UnwatchNode&, std::string&) {}

  // The order matters: a forgotten active consumer must have had the seat before the others came,
  // and the one that has it now came first of those.
  void build(const std::vector<Member>& wanted) {
    for (const Member& member : wanted) {
      if (member.status != "fA") continue;
      registers(member.name);
      node_lost(member.name);
      timer(member.name);
    }
    for (const bool holders : {true, false}) {
      for (const Member& member : wanted) {
        const bool holder = !member.status.ends_with("W");
        if (member.status != "fA" && holder == holders) register_settled(member.name, wanted);
      }
    }
    for (const Member& member : wanted) {
      if (member.status.ends_with("X") && state().find(member.name + ":A") != std::string::npos) {
        disturb();
      }
    }
    for (const Member& member : wanted) {
      if (member.status.starts_with("d") || member.status == "fW") node_lost(member.name);
      settle(wanted);
    }
    for (const Member& member : wanted) {
      if (member.status == "fW") timer(member.name);
      settle(wanted);
    }
  }
  void register_settled(const std::string& name, const std::vector<Member>& wanted) {
    registers(name);
    settle(wanted);
  }
  /// Answers every step-down, except for consumers wanted as deactivating.
  void settle(const std::vector<Member>& wanted) {
    for (std::size_t turn = 0; turn < wanted.size(); ++turn) {
      for (const Member& member : wanted) {
        const bool asked = state().find(member.name + ":X") != std::string::npos;
        if (asked && !member.status.ends_with("X")) replies(member.name);
      }
    }
  }
  /// A consumer with the first ticket comes and goes: the active one is told to step down.
  void disturb() {
    tickets_["ghost.9"] = Ticket{0};
    registers("ghost.9");
    unregisters("ghost.9");
  }

  PartitionIndex index_ = kSimple;
  std::map<std::string, Ticket> tickets_;
  std::map<std::string, ConnectionId> connections_;
  std::uint64_t last_ticket_ = 0;
  Generation durable_;
};

}  // namespace baton::scenario
