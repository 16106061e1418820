#include "server/app/watches.h"

#include <utility>

namespace baton {

std::vector<std::string> DeadLetterWatch::look(const std::vector<QueueDescription>& queues) {
  std::vector<std::string> out;
  for (const QueueDescription& queue : queues) {
    if (queue.stats.dead_lettered_total == 0) continue;
    if (known_.insert(queue.name).second) out.push_back(queue.name);
  }
  return out;
}

std::vector<GroupWatch::Alone> GroupWatch::look(const std::vector<GroupReport>& groups) {
  std::vector<Alone> out;
  std::map<GroupId, Seen> now;
  for (const GroupReport& report : groups) {
    if (report.lag == 0 || !report.description.members.empty()) continue;
    const GroupId& group = report.description.group;
    const auto before = alone_.find(group);
    if (before != alone_.end() && before->second == Seen::once) {
      out.push_back({.group = group, .lag = report.lag});
    }
    now.emplace(group, before == alone_.end() ? Seen::once : Seen::told);
  }
  alone_ = std::move(now);
  return out;
}

}  // namespace baton
