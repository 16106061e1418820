#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "pipeline/schema/mapping.h"
#include "pipeline/schema/schema_nodes.h"

namespace baton::schema {

/// A place in documents that some path leads through. Places make a tree; the root is 0.
using PathId = std::uint32_t;
inline constexpr PathId kNoPath = std::numeric_limits<PathId>::max();

/// The document, or one element of an array: all paths of a scope have one value at a time. Scopes
/// make a tree, too, with the document as 0.
using ScopeId = std::uint32_t;

struct PathNode {
  std::string text;  // As one writes it.
  ScopeId scope = 0;
  NameTable names;  // Its members that paths lead to,
  std::vector<PathId> members;
  PathId element = kNoPath;  // and its elements, which are a scope of their own.
};

struct Scope {
  PathId array = kNoPath;  // Of the parent scope.
  PathId element = 0;
  std::vector<PathId> paths;
  std::vector<ScopeId> inner;
  std::vector<std::size_t> tables;
};

struct PlannedColumn {
  PathId path = 0;
  bool is_place = false;  // "#": the place of the element that is `path`.
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
