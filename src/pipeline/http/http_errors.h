#pragma once

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// The meaning of an HTTP status; 0: no answer arrived.
flow::ErrorClass class_of_http(int status);

}  // namespace baton::pipeline
