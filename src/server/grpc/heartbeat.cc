#include "server/grpc/heartbeat.h"

#include "server/grpc/times.h"

namespace baton {

v1::HeartbeatAck to_proto(const HeartbeatAnswer& answer) {
  v1::HeartbeatAck ack;
  ack.set_number(answer.number);
  *ack.mutable_broker_time() = to_proto(answer.broker_time);
  *ack.mutable_heartbeat_interval() = to_proto(answer.terms.heartbeat);
  *ack.mutable_client_lease() = to_proto(answer.terms.client_lease);
  *ack.mutable_broker_lease() = to_proto(answer.terms.broker_lease);
  return ack;
}

}  // namespace baton
