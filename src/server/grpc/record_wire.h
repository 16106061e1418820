#pragma once

#include <string>

#include "core/stream/records.h"

/// Encodes decoded records as fields of a response: for clients that do not read batches. See
/// RecordEncoder.
namespace baton {

/// Field `records` of ReadResponse.
void append_read_record(std::string& out, RecordView record);
/// Field `records` of Batches in SubscribeResponse.
void append_batch_record(std::string& out, RecordView record);

}  // namespace baton
