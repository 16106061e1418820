#pragma once

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// What an answer means, by its HTTP status; 0: no answer came.
flow::ErrorClass class_of_http(int status);

}  // namespace baton::pipeline
