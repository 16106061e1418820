#pragma once

#include "worker/stores/store_kind.h"

namespace baton::coord {

/// A bucket of a Baton broker, through the SDK. The only store that tells the other watches when
/// the connection behind a session breaks.
inline constexpr StoreKind kBrokerKind{.name = "baton",
                                       .schemes = {{{"baton"}, {"batons", true}}},
                                       .one_address = true,
                                       .has_logins = false,
                                       .tells_of_lost_sessions = true};
extern const StoreAdapter kBrokerAdapter;

}  // namespace baton::coord
