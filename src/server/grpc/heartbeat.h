#pragma once

#include <baton/v1/session.pb.h>

#include "server/session/leased_session.h"

namespace baton {

v1::HeartbeatAck to_proto(const HeartbeatAnswer& answer);

}  // namespace baton
