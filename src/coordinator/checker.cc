#include "coordinator/checker.h"

#include "coordinator/search.h"
#include "coordinator/world.h"

namespace baton::checker {

SearchResult search(const SearchOptions& options) {
  return Search<World, SearchOptions>(options).run();
}

}  // namespace baton::checker
