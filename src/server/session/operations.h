#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Everything that can be asked of the broker, in one table (operations.def). Metrics and the log
/// of changes read it, and access rules can. A protocol serves an operation through a
/// RunningOperation, which needs a row of the table.
namespace baton {

enum class Shape : std::uint8_t { call, session };
enum class Resource : std::uint8_t { queue, stream, group, bucket, cluster };
enum class Permission : std::uint8_t { read, write, manage, observe };

enum class Operation : std::uint8_t {
#define OPERATION(id, name, shape, resource, permission, event) id,
#include "server/session/operations.def"
#undef OPERATION
};

struct OperationInfo {
  Operation id;
  std::string_view name;
  Shape shape;
  Resource resource;
  Permission permission;
  std::string_view event;
};

inline constexpr std::array kOperations = {
#define OPERATION(id, name, shape, resource, permission, event)                 \
  OperationInfo{Operation::id,          name, Shape::shape, Resource::resource, \
                Permission::permission, event},
#include "server/session/operations.def"
#undef OPERATION
};

constexpr std::size_t index_of(Operation operation) { return static_cast<std::size_t>(operation); }
constexpr const OperationInfo& info_of(Operation operation) {
  return kOperations[index_of(operation)];
}

}  // namespace baton
