#include "server/session/read_from.h"

namespace baton {

Result<Offset> resolve(const ReadFrom& from, const PartitionReader& reader) {
  switch (from.place) {
    case ReadFrom::Place::first: return reader.first();
    case ReadFrom::Place::next: return reader.next();
    case ReadFrom::Place::last: {
      const Offset next = reader.next();
      return next > reader.first() ? Offset{next.value - 1} : next;
    }
    case ReadFrom::Place::offset: return from.offset;
    case ReadFrom::Place::time: return reader.offset_for_time(from.time);
  }
  return reader.first();
}

}  // namespace baton
