#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Everything that can be asked of the broker, in one table (operations.def): metrics, logs and
/// access rules read it, and no protocol has an operation that is not in it.
namespace baton {

enum class Resource : std::uint8_t { queue, stream, group, bucket, broker };
enum class Permission : std::uint8_t { read, write, manage, observe };

enum class Operation : std::uint8_t {
#define OPERATION(id, name, resource, permission, event) id,
#include "server/session/operations.def"
#undef OPERATION
};

struct OperationInfo {
  std::string_view name;
  Resource resource;
  Permission permission;
  std::string_view event;
};

inline constexpr std::array kOperations = {
#define OPERATION(id, name, resource, permission, event) \
  OperationInfo{name, Resource::resource, Permission::permission, event},
#include "server/session/operations.def"
#undef OPERATION
};

constexpr const OperationInfo& info_of(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)];
}

}  // namespace baton
