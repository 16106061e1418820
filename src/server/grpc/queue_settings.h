#pragma once

#include <baton/v1/queues.pb.h>

#include "base/result.h"
#include "core/queue/settings.h"

/// Converts the settings of a queue from the wire and back. Both directions iterate core's table of
/// settings and find a setting's field by its number.
namespace baton {

/// Fails with invalid_argument, naming the field. The queue's own rules check the rest.
Result<QueueSettingsPatch> convert_settings(const v1::QueueSettings& in);
void describe_settings(const QueueSettings& in, v1::QueueSettings& out);

}  // namespace baton
