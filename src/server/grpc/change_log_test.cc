#include "server/grpc/change_log.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TEST(ChangeLog, TakesWhatChangesQueuesStreamsGroupsAndBuckets) {
  for (const Method method : {Method::create_queue, Method::purge, Method::delete_stream,
                              Method::set_group_offsets, Method::delete_bucket}) {
    EXPECT_TRUE(ChangeLog::takes(method));
  }
  for (const Method method : {Method::enqueue, Method::ack, Method::append, Method::kv_put,
                              Method::describe_queue, Method::store_offset}) {
    EXPECT_FALSE(ChangeLog::takes(method));
  }
}

struct MoveCommand {
  std::string queue;
  bool dry_run = false;
};

// A dry run has changed nothing.
TEST(ChangeLog, SaysWhatACommandWasAbout) {
  MoveCommand command{.queue = "orders dlq"};
  EXPECT_EQ(subject_of(command), "queue=\"orders dlq\"");
  command.dry_run = true;
  EXPECT_EQ(subject_of(command), "");
}

}  // namespace
}  // namespace baton
