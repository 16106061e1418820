#include "server/session/operations.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace baton {
namespace {

TEST(Operations, NamesAreTheirOwnAndWhatIsLoggedIsManaged) {
  std::set<std::string_view> names;
  for (const OperationInfo& operation : kOperations) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
    if (!operation.event.empty()) {
      EXPECT_EQ(operation.permission, Permission::manage) << operation.name;
    }
  }
  EXPECT_EQ(info_of(Operation::create_queue).name, "CreateQueue");
  EXPECT_EQ(info_of(Operation::checkpoint).resource, Resource::broker);
}

}  // namespace
}  // namespace baton
