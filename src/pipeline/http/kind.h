#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// A server that takes each record as a POST.
inline constexpr EndKind kHttpEnd{.name = "http",
                                  .shape = UrlShape::whole,
                                  .schemes = {{{"http://"}, {"https://"}}},
                                  .form = "HOST:PORT/PATH"};
extern const SinkKind kHttpSink;

}  // namespace baton::pipeline
