#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/shard/broker.h"

/// What the log tells of queues and groups without being asked. Pure.
namespace baton {

/// Finds queues whose first message was dead-lettered since the last look.
class DeadLetterWatch {
 public:
  /// The names that are new.
  std::vector<std::string> look(const std::vector<QueueDescription>& queues);

 private:
  std::set<std::string> known_;
};

/// Finds groups that have records to read and no consumer.
class GroupWatch {
 public:
  struct Alone {
    GroupId group;
    std::uint64_t lag = 0;
  };
  /// Those that were so at this look and at the one before, each once until it has a consumer again
  /// or nothing to read: consumers that start again take a moment.
  std::vector<Alone> look(const std::vector<GroupReport>& groups);

 private:
  enum class Seen : std::uint8_t { once, told };
  std::map<GroupId, Seen> alone_;
};

}  // namespace baton
