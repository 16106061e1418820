#include "core/workers/plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/lease/sticky_assignment.h"

namespace baton::partition {
namespace {

class Planner {
 public:
  Planner(const GroupView& view, const PlanRequest& request) : view_(view), request_(request) {
    for (const auto& [id, known] : view.sessions()) {
      const WorkerSession& session = known.session;
      if (session.dead() || id == request.leaving) continue;
      if (session.state == SessionState::active) {
        places_.emplace(id, members_.size());
        members_.push_back(id);
        weights_.push_back(session.weight);
      }
      if (session.static_id && may_inherit(session.state)) {
        const auto [heir, is_first] = heirs_.try_emplace(std::string(worker_of(id)), id);
        if (!is_first && session.state == SessionState::active) heir->second = id;
      }
    }
  }

  Plan plan() {
    Plan plan = today();
    assign(plan);
    std::erase_if(plan, [&](const auto& chunk) { return stands(chunk.first, chunk.second); });
    return plan;
  }

 private:
  static bool may_inherit(SessionState state) {
    return state == SessionState::active || state == SessionState::standby;
  }

  [[nodiscard]] bool stands(std::uint32_t chunk, const Assignment& assignment) const {
    const auto found = view_.chunks().find(chunk);
    // A chunk that was removed or restored has to be written, even if nothing in it changes.
    return found != view_.chunks().end() && found->second.revision != 0 &&
           !found->second.corrected && found->second.assignment == assignment;
  }

  /// The assignment as it is, with room for what is missing. A chunk that was removed is
  /// remembered: the owners it named may be at work.
  [[nodiscard]] Plan today() const {
    Plan result;
    for (std::uint32_t chunk = 0; chunk < chunks_of(request_.partitions); ++chunk) {
      Assignment& assignment = result[chunk];
      const auto found = view_.chunks().find(chunk);
      if (found != view_.chunks().end()) assignment = found->second.assignment;
      assignment.partitions = request_.partitions;
      assignment.first = chunk * kChunkPartitions;
      assignment.holdings.resize(size_of_chunk(request_.partitions, chunk));
    }
    return result;
  }

  [[nodiscard]] HolderIndex place_of(const SessionId& session) const {
    const auto found = places_.find(session);
    if (found == places_.end()) return std::nullopt;
    return found->second;
  }

  [[nodiscard]] bool has_stopped(const SessionId& owner) const {
    return owner.empty() || owner == request_.leaving || view_.is_dead(owner);
  }

  /// The worker that returns for the partitions of `owner`; null if none does.
  [[nodiscard]] const SessionId* heir_of(const SessionId& owner) const {
    const auto found = heirs_.find(worker_of(owner));
    return owner.empty() || found == heirs_.end() || found->second == owner ? nullptr
                                                                            : &found->second;
  }

  /// What a plan needs to know of a session, for each of its partitions.
  struct Facts {
    HolderIndex place{};  // Index among the members.
    bool stopped = false;
    const SessionId* heir = nullptr;
  };
  const Facts& facts_of(const SessionId& session) {
    const auto [at, is_new] = facts_.try_emplace(session);
    if (is_new) at->second = {place_of(session), has_stopped(session), heir_of(session)};
    return at->second;
  }

  struct Standing {
    HolderIndex holder{};
    bool frozen = false;
  };
  /// Who has the partition once every change in progress is done.
  Standing standing_of(const Holding& holding) {
    if (holding.epoch >= kEpochMax) return {.frozen = true};
    const HolderIndex next = facts_of(holding.next).place;
    const Facts& owner = facts_of(holding.owner);
    if (!owner.stopped) {
      if (next.has_value()) return {.holder = next};
      if (owner.place.has_value()) return {.holder = owner.place};
      // Its owner is draining or restarting, or is not known yet.
      if (owner.heir != nullptr) return {.holder = place_of(*owner.heir)};
      return {.frozen = true};
    }
    if (owner.heir != nullptr) {
      // The heir on standby is about to become active: its partitions wait for it.
      const HolderIndex place = place_of(*owner.heir);
      return {.holder = place, .frozen = !place.has_value()};
    }
    return {.holder = next};
  }

  void assign(Plan& plan) {
    std::vector<Holding*> open;
    std::vector<HolderIndex> holders;
    for (auto& [number, chunk] : plan) {
      for (Holding& holding : chunk.holdings) {
        const Standing standing = standing_of(holding);
        if (standing.frozen) continue;
        open.push_back(&holding);
        holders.push_back(standing.holder);
      }
    }
    const std::vector<HolderIndex> target = assign_sticky(holders, weights_);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const HolderIndex& member = target[i];
      change(*open[i], member.has_value() ? members_[*member] : SessionId());
    }
  }

  void change(Holding& holding, const SessionId& target) {
    const Facts& owner = facts_of(holding.owner);
    if (!owner.stopped) {
      if (!owner.place.has_value()) return;  // The owner hands over by itself, or dies.
      holding.next = target == holding.owner ? SessionId() : target;
      return;
    }
    holding.next.clear();
    if (holding.owner == target) return;
    holding.why = why(holding, target);
    holding.owner = target;
    holding.since = request_.now;
    ++holding.epoch;
  }

  [[nodiscard]] Why why(const Holding& holding, const SessionId& target) const {
    if (holding.owner.empty()) return Why::first;
    if (worker_of(holding.owner) == worker_of(target)) return Why::restart;
    if (holding.owner == request_.leaving) return Why::leave;
    const GroupView::KnownSession* owner = view_.find(holding.owner);
    const bool left = owner != nullptr && owner->session.state == SessionState::gone;
    return left ? Why::leave : Why::evicted;
  }

  const GroupView& view_;
  const PlanRequest& request_;
  std::vector<SessionId> members_;
  std::vector<std::uint32_t> weights_;
  std::map<SessionId, std::size_t> places_;
  std::map<std::string, SessionId, std::less<>> heirs_;  // By worker; static ids only.
  std::unordered_map<SessionId, Facts> facts_;           // Looked up, never iterated.
};

}  // namespace

Plan make_plan(const GroupView& view, const PlanRequest& request) {
  return Planner(view, request).plan();
}

}  // namespace baton::partition
