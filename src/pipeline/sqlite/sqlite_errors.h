#pragma once

#include "pipeline/flow/error_class.h"

namespace baton::pipeline {

/// The class of an error, by SQLite's extended result code.
flow::ErrorClass class_of_sqlite(int code);

}  // namespace baton::pipeline
