#include "server/session/operations.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Operations, NamesAreTheirOwnAndRowsAreWhereTheirIdsSay) {
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const OperationInfo& operation : kOperations) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
    EXPECT_EQ(index_of(operation.id), index++) << operation.name;
  }
  EXPECT_EQ(info_of(Operation::create_queue).name, "CreateQueue");
}

// The log of changes has what an operator asks about later, and nothing that happens a thousand
// times a second.
TEST(Operations, WhatIsLoggedIsManagedAndASessionIsNot) {
  for (const OperationInfo& operation : kOperations) {
    if (operation.event.empty()) continue;
    EXPECT_EQ(operation.permission, Permission::manage) << operation.name;
    EXPECT_EQ(operation.shape, Shape::call) << operation.name;
  }
}

// Listing and describing needs less than reading contents.
TEST(Operations, WhoMayOnlyObserveSeesNoPayload) {
  for (const Operation operation :
       {Operation::peek, Operation::lease, Operation::consume, Operation::read,
        Operation::subscribe, Operation::kv_get, Operation::kv_list, Operation::kv_watch}) {
    EXPECT_EQ(info_of(operation).permission, Permission::read) << info_of(operation).name;
  }
}

}  // namespace
}  // namespace baton
