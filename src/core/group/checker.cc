#include "core/group/checker.h"

#include "core/group/search.h"
#include "core/group/world.h"

namespace baton::checker {

SearchResult search(const SearchOptions& options) {
  return Search<World, SearchOptions>(options).run();
}

}  // namespace baton::checker
