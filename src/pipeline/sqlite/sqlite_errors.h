#pragma once

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// What an error means, by SQLite's extended result code.
flow::ErrorClass class_of_sqlite(int code);

}  // namespace baton::pipeline
