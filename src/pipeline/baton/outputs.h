#pragma once

#include <memory>

#include "pipeline/ends/endpoint.h"
#include "pipeline/ends/record_output.h"

namespace baton::pipeline {

Result<std::unique_ptr<RecordOutput>> open_stream_output(const Endpoint& endpoint,
                                                         const OutputOptions& options);
Result<std::unique_ptr<RecordOutput>> open_queue_output(const Endpoint& endpoint,
                                                        const OutputOptions& options);

}  // namespace baton::pipeline
