#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/group/checker.h"
#include "core/group/types.h"

/// The search with clients as the nodes of the lease rule: real Coordinator, Seats and both sides
/// of the session lease, and a model of clients, of links that are cut silently, thaw or break, and
/// of time (see client_world.h). Messages may take any time, so the search includes frozen clients
/// and frozen brokers.
///
/// In every state: never two clients that may hand out records, each asked by its own clock. A
/// client whose link visibly broke, or whose broker started again, is left out until it has
/// noticed, unless the group is strict. Letting things settle leaves exactly one client at work.
namespace baton::checker {

enum class ClientBug : std::uint8_t {
  none,
  lease_from_answer,
  keepalive_gives_away,
  no_check_at_hand_out,
  late_answer_revives,
  answer_overtakes_words,
  strict_moves_at_once,
  restart_forgets_leases,
};
struct ClientBugName {
  ClientBug bug;
  std::string_view name;
  std::string_view text;
};
inline constexpr std::array<ClientBugName, 7> kClientBugs{{
    {ClientBug::lease_from_answer, "lease_from_answer",
     "the client counts its lease from the receipt of the answer"},
    {ClientBug::keepalive_gives_away, "keepalive_gives_away",
     "the broker gives the seat of a silent link away before its lease is over"},
    {ClientBug::no_check_at_hand_out, "no_check_at_hand_out",
     "the client hands out until its timer says that the lease is over"},
    {ClientBug::late_answer_revives, "late_answer_revives",
     "an answer that comes after the end of the lease begins it again"},
    {ClientBug::answer_overtakes_words, "answer_overtakes_words",
     "answers to heartbeats overtake what is said about the seat"},
    {ClientBug::strict_moves_at_once, "strict_moves_at_once",
     "a visible break moves the seat of a strict group at once"},
    {ClientBug::restart_forgets_leases, "restart_forgets_leases",
     "a broker that starts again fills the seats of strict groups at once"},
}};

struct ClientSearchOptions {
  std::uint32_t sessions = 2;  // Calls, of any client: one that returns makes another call.
  PartitionIndex partition_index = kSimple;
  Handover handover = Handover::at_once;
  std::uint8_t cuts = 1;
  std::uint8_t breaks = 0;
  std::uint8_t crashes = 0;  // Of a client.
  std::uint8_t unsubscribes = 0;
  std::uint8_t restarts = 0;     // Of the broker.
  std::uint8_t evaluations = 0;  // By an operator.
  ClientBug bug = ClientBug::none;
  std::uint64_t states_max = 50'000'000;
};

SearchResult search(const ClientSearchOptions& options);

}  // namespace baton::checker
