#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/shard/broker.h"

/// What is logged about queues and groups without a request. Pure.
namespace baton {

/// Finds queues whose first message was dead-lettered since the last check.
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
  /// Groups without a consumer at this check and at the one before. Each is reported once until it
  /// has a consumer again or nothing to read. Two checks, because restarting consumers take a
  /// moment.
  std::vector<Alone> look(const std::vector<GroupReport>& groups);

 private:
  enum class Seen : std::uint8_t { once, told };
  std::map<GroupId, Seen> alone_;
};

}  // namespace baton
