#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/group/types.h"

/// Searches every state that the real Coordinator and real Seats can reach together, over a model
/// of clients, links and nodes (see world.h): every order of registering, unsubscribing, delivering
/// a message, answering, crashing, losing a node, its return, and timers, within the budgets given.
///
/// In every state: never two delivering; a client hears active and not active in turn (a repeat
/// only after a cut); letting things settle, with the cut nodes staying away and with all of them
/// coming back, leaves exactly one active consumer, the target, if any consumer is connected.
namespace baton::checker {

/// A mistake for the search to find. Mistakes are planted between the parts, by changing or losing
/// what one part says to the other: the parts themselves have no switches.
enum class Bug : std::uint8_t {
  none,
  stale_reply_promotes,
  old_reply_restarts_delivery,
  returned_active_must_answer,
  step_down_sent_again,
  dead_sibling_elected,
  step_down_lost_with_subscription,
  cut_off_deactivating_blocks,
  cut_off_deactivating_replaced,
  lost_words_not_repeated,
  rechosen_not_told,
  node_does_not_fence,
  lease_renewed_by_return,
  stale_timer_forgets,
  tickets_ignored,
  dropped_not_told,
};
struct BugName {
  Bug bug;
  std::string_view name;
  std::string_view text;
};
inline constexpr std::array<BugName, 15> kBugs{{
    {Bug::stale_reply_promotes, "stale_reply_promotes",
     "any step-down reply ends the hand-over under way, whoever sent it, for whatever generation"},
    {Bug::old_reply_restarts_delivery, "old_reply_restarts_delivery",
     "a client's reply to an old step-down starts delivery again"},
    {Bug::returned_active_must_answer, "returned_active_must_answer",
     "a forgotten active one that is back must answer before anybody is activated, and is not "
     "asked"},
    {Bug::step_down_sent_again, "step_down_sent_again",
     "every change of membership sends the step-down again, under a new generation"},
    {Bug::dead_sibling_elected, "dead_sibling_elected",
     "connection down removes one consumer only, and a sibling of it is elected"},
    {Bug::step_down_lost_with_subscription, "step_down_lost_with_subscription",
     "a subscription that ends while a step-down is on its way to it does not unregister"},
    {Bug::cut_off_deactivating_blocks, "cut_off_deactivating_blocks",
     "the timer leaves a deactivating consumer alone"},
    {Bug::cut_off_deactivating_replaced, "cut_off_deactivating_replaced",
     "a deactivating consumer is replaced as soon as its node is lost"},
    {Bug::lost_words_not_repeated, "lost_words_not_repeated",
     "what was lost in a cut is not said again"},
    {Bug::rechosen_not_told, "rechosen_not_told",
     "a consumer that is chosen again after stepping down is not told"},
    {Bug::node_does_not_fence, "node_does_not_fence",
     "a node that cannot renew its lease goes on delivering"},
    {Bug::lease_renewed_by_return, "lease_renewed_by_return",
     "a link that comes back renews the lease of seats that were not told Activate over it"},
    {Bug::stale_timer_forgets, "stale_timer_forgets",
     "the timer of an earlier cut forgets a connection during a later one"},
    {Bug::tickets_ignored, "tickets_ignored",
     "a subscription takes what was said to a former one of the same id"},
    {Bug::dropped_not_told, "dropped_not_told",
     "a consumer that an operator dropped and that comes back is not told"},
}};

/// Which consumers share a connection, and which connections a node. With three consumers:
enum class Topology : std::uint8_t {
  separate,           // x.0 y.1 z.2, each on a node of its own.
  shared_connection,  // x.0 y.1 x.2, each connection on a node of its own.
  shared_node,        // x.0 y.1 z.2, x and y on one node.
};

struct SearchOptions {
  std::uint32_t consumers = 3;
  PartitionIndex partition_index = kSimple;
  Topology topology = Topology::separate;
  bool ask_offset = false;
  // How often each event may happen.
  std::uint8_t cuts = 1;
  std::uint8_t unsubscribes = 1;  // By the client, or for not answering in time.
  std::uint8_t crashes = 1;       // Of a connection, or of a node with all its connections.
  std::uint8_t restarts = 0;      // A new leader, or the broker restarted from its rows.
  std::uint8_t rejoins = 0;       // A subscription id that is used again.
  // By an operator, who is right: each consumer dropped has ended, or its lease is over.
  std::uint8_t evaluations = 0;
  std::uint8_t purges = 0;  // Of a node that is away and never returns.
  Bug bug = Bug::none;
  std::uint64_t states_max = 50'000'000;
};

struct SearchResult {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint32_t depth = 0;  // Length of the longest shortest path.
  std::optional<std::string> failure;
  std::vector<std::string> trace;  // The shortest path to the failure, one event a line.
};

SearchResult search(const SearchOptions& options);

}  // namespace baton::checker
