#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/schema/mapping.h"
#include "pipeline/schema/schema_nodes.h"

namespace baton::schema {

/// A place in documents that some path passes. Places form a tree; the root is 0.
using PathId = std::uint32_t;
inline constexpr PathId kNoPath = std::numeric_limits<PathId>::max();

/// The document, or one element of an array: all paths of a scope have one value at a time. Scopes
/// also form a tree; the document is 0.
using ScopeId = std::uint32_t;

struct PathNode {
  std::string text;  // In the form of the config.
  ScopeId scope = 0;
  NameTable names;  // Its members that are in paths,
  std::vector<PathId> members;
  PathId element = kNoPath;  // and its elements, which are another scope.
};

struct Scope {
  PathId array = kNoPath;  // A path of the parent scope.
  PathId element = 0;
  std::vector<PathId> paths;
  std::vector<ScopeId> inner;
  std::vector<std::size_t> tables;
};

struct PlannedColumn {
  PathId path = 0;
  bool is_place = false;  // "#": the index of the element at `path`.
};

struct PlannedTable {
  PathId row = 0;
  std::vector<PlannedColumn> columns;
};

struct Mapping::Plan {
  RowMapping mapping;
  std::size_t key_column = 0;
  std::vector<std::size_t> columns_of_tables;
  std::vector<PlannedTable> tables;
  std::vector<PathNode> paths;
  std::vector<Scope> scopes;
};

}  // namespace baton::schema
