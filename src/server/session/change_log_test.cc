#include "server/session/change_log.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(ChangeLog, TakesWhatChangesQueuesStreamsGroupsAndBuckets) {
  for (const Operation method :
       {Operation::create_queue, Operation::purge, Operation::delete_stream,
        Operation::set_group_offsets, Operation::delete_bucket}) {
    EXPECT_TRUE(ChangeLog::takes(method));
  }
  for (const Operation method :
       {Operation::enqueue, Operation::ack, Operation::append, Operation::kv_put,
        Operation::describe_queue, Operation::store_offset}) {
    EXPECT_FALSE(ChangeLog::takes(method));
  }
}

struct MoveCommand {
  std::string queue;
  bool dry_run = false;
};

// A dry run changes nothing.
TEST(ChangeLog, SaysWhatACommandWasAbout) {
  MoveCommand command{.queue = "orders dlq"};
  EXPECT_EQ(subject_of(command), "queue=\"orders dlq\"");
  command.dry_run = true;
  EXPECT_EQ(subject_of(command), "");
}

}  // namespace
}  // namespace baton
